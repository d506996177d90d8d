// How far a long run has come, on standard error: one line, drawn again now and then; where that is
// no terminal, a line now and then.
#ifndef SLUICE_BENCH_REPORT_PROGRESS_LINE_H_
#define SLUICE_BENCH_REPORT_PROGRESS_LINE_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/clock.h"

namespace sluice::bench {

// Not before a while, so that short runs show none. What is drawn is wiped in the end.
class ProgressLine {
 public:
  // `draws`: also where stderr is no terminal.
  explicit ProgressLine(bool draws);
  ~ProgressLine() { Clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // True when it is time for another line.
  bool IsDue(int64_t now_ns = MonotonicNs()) const { return now_ns >= next_ns_; }
  void Draw(absl::string_view text);
  void Clear();
  absl::Duration elapsed() const { return absl::Nanoseconds(MonotonicNs() - begin_ns_); }

 private:
  const bool draws_;
  const int64_t begin_ns_ = MonotonicNs();
  int64_t next_ns_;
  bool drawn_ = false;
};

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_REPORT_PROGRESS_LINE_H_
