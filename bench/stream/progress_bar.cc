// A bar, numbers and a label.
#include "stream/progress_bar.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "absl/time/time.h"

namespace sluice::bench {

void ProgressBar::Begin(const std::string& label, int64_t items) {
  Clear();
  label_ = label;
  items_ = items;
  if (shown_) line_.emplace(/*asked_for=*/false);
}

void ProgressBar::Draw(int64_t items_done, int64_t bytes_done) {
  constexpr int64_t kWidth = 30;
  const int64_t filled = items_ > 0 ? std::min(kWidth, kWidth * items_done / items_) : 0;
  const double seconds = absl::ToDoubleSeconds(line_->elapsed());
  line_->Draw(absl::StrFormat(
      "[%s%s] %d/%d items, %.3f GB/s, %.0f s  %s", std::string(static_cast<size_t>(filled), '#'),
      std::string(static_cast<size_t>(kWidth - filled), '.'), items_done, items_,
      static_cast<double>(bytes_done) * 1e-9 / seconds, seconds, label_));
}

}  // namespace sluice::bench
