// The bar's thread and text.
#include "report/progress_bar.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "workload/numbers.h"

namespace sluice::bench {

ProgressBar::ProgressBar(bool shown) {
  if (!shown) return;
  try {
    thread_ = std::thread([this] { Run(); });
  } catch (const std::system_error&) {
    // The run does without.
  }
}

ProgressBar::~ProgressBar() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ends_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void ProgressBar::Begin(const std::string& label, int64_t total, const char* unit) {
  const std::lock_guard<std::mutex> lock(mutex_);
  label_ = label;
  total_ = total;
  unit_ = unit;
  followed_total_ = followed_done_ = nullptr;
  Advance(0);
  line_.emplace(/*draws=*/false);
}

void ProgressBar::Follow(const std::atomic<int64_t>* total, const std::atomic<int64_t>* done) {
  const std::lock_guard<std::mutex> lock(mutex_);
  followed_total_ = total;
  followed_done_ = done;
}

void ProgressBar::Clear() {
  const std::lock_guard<std::mutex> lock(mutex_);
  line_.reset();
}

void ProgressBar::Run() {
  constexpr std::chrono::milliseconds kBetweenLooks(100);
  std::unique_lock<std::mutex> lock(mutex_);
  while (!ends_) {
    wake_.wait_for(lock, kBetweenLooks);
    if (line_ && line_->IsDue()) line_->Draw(Text());
  }
  line_.reset();
}

std::string ProgressBar::Text() const {
  constexpr int64_t kWidth = 30;
  const int64_t total = followed_total_ == nullptr ? total_ : followed_total_->load();
  const int64_t done = followed_done_ == nullptr ? done_.load() : followed_done_->load();
  const int64_t filled = total > 0 ? std::min(kWidth, kWidth * done / total) : 0;
  const double seconds = absl::ToDoubleSeconds(line_->elapsed());
  const int64_t bytes = followed_done_ == nullptr ? bytes_.load() : done;
  const std::string count = followed_done_ == nullptr
                                ? absl::StrCat(done, "/", total, " ", unit_)
                                : absl::StrCat(BytesName(done), " of ", BytesName(total));
  return absl::StrFormat(
      "[%s%s] %s, %s%.0f s  %s", std::string(static_cast<size_t>(filled), '#'),
      std::string(static_cast<size_t>(kWidth - filled), '.'), count,
      bytes > 0 ? absl::StrFormat("%.3f GB/s, ", static_cast<double>(bytes) * 1e-9 / seconds) : "",
      seconds, label_);
}

}  // namespace sluice::bench
