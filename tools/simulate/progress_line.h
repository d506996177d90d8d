// How far a long simulation has come, on standard error: one line, drawn again now and then.
#ifndef SLUICE_TOOLS_SIMULATE_PROGRESS_LINE_H_
#define SLUICE_TOOLS_SIMULATE_PROGRESS_LINE_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace sluice::bench {

// Shown where stderr is a terminal, or if asked for; not before a while, so that short runs show
// none. The line is wiped in the end.
class ProgressLine {
 public:
  explicit ProgressLine(bool asked_for);
  ~ProgressLine() { Clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // True when it is time for another line.
  bool IsDue() const { return shown_ && absl::Now() >= next_; }
  void Draw(absl::string_view text);
  void Clear();
  absl::Duration elapsed() const { return absl::Now() - begin_; }

 private:
  const bool shown_;
  const absl::Time begin_ = absl::Now();
  absl::Time next_;
  bool drawn_ = false;
};

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_SIMULATE_PROGRESS_LINE_H_
