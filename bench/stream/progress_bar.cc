// One line that is drawn over itself.
#include "stream/progress_bar.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "absl/strings/str_format.h"
#include "base/clock.h"

namespace sluice::bench {
namespace {

constexpr int64_t kBetweenNs = 100'000'000;
constexpr int64_t kWidth = 30;

}  // namespace

ProgressBar::ProgressBar(bool shown) : shown_(shown && isatty(STDERR_FILENO) == 1) {}

void ProgressBar::Begin(const std::string& label, int64_t items) {
  Clear();
  label_ = label;
  items_ = items;
  begin_ns_ = MonotonicNs();
  next_ns_ = begin_ns_ + kBetweenNs;
}

void ProgressBar::Draw(int64_t items_done, int64_t bytes_done, int64_t now_ns) {
  next_ns_ = now_ns + kBetweenNs;
  const int64_t filled = items_ > 0 ? std::min(kWidth, kWidth * items_done / items_) : 0;
  const double seconds = static_cast<double>(now_ns - begin_ns_) * 1e-9;
  absl::FPrintF(stderr, "\r\033[K[%s%s] %d/%d items, %.3f GB/s, %.0f s  %s",
                std::string(static_cast<size_t>(filled), '#'),
                std::string(static_cast<size_t>(kWidth - filled), '.'), items_done, items_,
                static_cast<double>(bytes_done) * 1e-9 / seconds, seconds, label_);
  std::fflush(stderr);
  drawn_ = true;
}

void ProgressBar::Clear() {
  if (!drawn_) return;
  std::fputs("\r\033[K", stderr);
  std::fflush(stderr);
  drawn_ = false;
}

}  // namespace sluice::bench
