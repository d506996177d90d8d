// How far a run has come, on a terminal; nothing where standard error is none.
#ifndef SLUICE_BENCH_STREAM_PROGRESS_BAR_H_
#define SLUICE_BENCH_STREAM_PROGRESS_BAR_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "report/progress_line.h"

namespace sluice::bench {

// Thread: one.
class ProgressBar {
 public:
  // `shown`: if this rank is the one to show it.
  explicit ProgressBar(bool shown) : shown_(shown) {}

  // What follows is `items` items of `label`, "threads:8x4, round 2 of 9".
  void Begin(const std::string& label, int64_t items) {
    Clear();
    label_ = label;
    items_ = items;
    if (shown_) line_.emplace(/*asked_for=*/false);
  }
  void Advance(int64_t items_done, int64_t bytes_done, int64_t now_ns) {
    if (line_ && line_->IsDue(now_ns)) Draw(items_done, bytes_done);
  }
  void Clear() { line_.reset(); }

 private:
  void Draw(int64_t items_done, int64_t bytes_done) {
    constexpr int64_t kWidth = 30;
    const int64_t filled = items_ > 0 ? std::min(kWidth, kWidth * items_done / items_) : 0;
    const double seconds = absl::ToDoubleSeconds(line_->elapsed());
    line_->Draw(absl::StrFormat(
        "[%s%s] %d/%d items, %.3f GB/s, %.0f s  %s", std::string(static_cast<size_t>(filled), '#'),
        std::string(static_cast<size_t>(kWidth - filled), '.'), items_done, items_,
        static_cast<double>(bytes_done) * 1e-9 / seconds, seconds, label_));
  }

  const bool shown_;
  std::string label_;
  int64_t items_ = 0;
  std::optional<ProgressLine> line_;
};

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_STREAM_PROGRESS_BAR_H_
