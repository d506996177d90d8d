// How far a run has come, on a terminal; nothing where standard error is none.
#ifndef SLUICE_BENCH_STREAM_PROGRESS_BAR_H_
#define SLUICE_BENCH_STREAM_PROGRESS_BAR_H_

#include <cstdint>
#include <optional>
#include <string>

#include "report/progress_line.h"

namespace sluice::bench {

// Thread: one.
class ProgressBar {
 public:
  // `shown`: if this rank is the one to show it.
  explicit ProgressBar(bool shown) : shown_(shown) {}

  // What follows is `items` items of `label`, "threads:8x4, round 2 of 9".
  void Begin(const std::string& label, int64_t items);
  void Advance(int64_t items_done, int64_t bytes_done, int64_t now_ns) {
    if (line_ && line_->IsDue(now_ns)) Draw(items_done, bytes_done);
  }
  void Clear() { line_.reset(); }

 private:
  void Draw(int64_t items_done, int64_t bytes_done);

  const bool shown_;
  std::string label_;
  int64_t items_ = 0;
  std::optional<ProgressLine> line_;
};

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_STREAM_PROGRESS_BAR_H_
