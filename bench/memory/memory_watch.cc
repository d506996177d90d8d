// Peaks between resets, or samples.
#include "memory/memory_watch.h"

#include <algorithm>
#include <chrono>

namespace sluice::bench {
namespace {

constexpr std::chrono::milliseconds kBetweenSamples(1);

}  // namespace

absl::string_view MethodName(MemoryWatch::Method method) {
  switch (method) {
    case MemoryWatch::Method::kPeak:
      return "peak";
    case MemoryWatch::Method::kSampled:
      return "sampled";
    case MemoryWatch::Method::kNone:
      break;
  }
  return "none";
}

MemoryWatch::MemoryWatch(bool maps_files) {
  if (!ReadResidentMemory()) return;
  if (!maps_files && ResetPeakMemory()) {
    method_ = Method::kPeak;
    return;
  }
  method_ = Method::kSampled;
  sampler_ = std::thread([this] {
    while (!stop_) {
      Sample();
      std::this_thread::sleep_for(kBetweenSamples);
    }
  });
}

MemoryWatch::~MemoryWatch() {
  stop_ = true;
  if (sampler_.joinable()) sampler_.join();
}

void MemoryWatch::Note() {
  const auto now = ReadResidentMemory();
  if (!now) return;
  int64_t most = now->anonymous;
  if (method_ == Method::kPeak) {
    // What is mapped only grows; where the kernel takes pages of files back, they were there
    // before.
    most = std::max(most, now->peak - std::max(now->files, begin_.files) -
                              std::max(now->shared, begin_.shared));
  }
  growth_ = std::max(growth_, kept_ + most - users_ - begin_.anonymous);
}

void MemoryWatch::Sample() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (watching_) Note();
}

void MemoryWatch::Begin() {
  if (method_ == Method::kNone) return;
  users_ = 0;
  begin_ = ReadResidentMemory().value_or(begin_);
  Resume(0);
}

void MemoryWatch::Pause() {
  if (method_ == Method::kNone) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  Note();
  watching_ = false;
}

void MemoryWatch::Resume(int64_t users_bytes) {
  if (method_ == Method::kNone) return;
  if (method_ == Method::kPeak) ResetPeakMemory();
  const std::lock_guard<std::mutex> lock(mutex_);
  users_ = users_bytes;
  watching_ = true;
}

void MemoryWatch::End() {
  if (method_ == Method::kNone) return;
  Pause();
  const ResidentMemory now = ReadResidentMemory().value_or(begin_);
  kept_ = std::max<int64_t>(0, kept_ + now.anonymous - users_ - begin_.anonymous);
}

}  // namespace sluice::bench
