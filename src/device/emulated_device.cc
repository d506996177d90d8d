// The thread that copies, its queue and its clock.
#include "device/emulated_device.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/clock.h"
#include "device/carry_out.h"
#include "device/device.h"
#include "device/host_memory.h"
#include "device/normalization.h"
#include "device/owned_batch.h"
#include "device/reduction.h"
#include "device/strided_copy.h"
#include "sluice/testing.h"
#include "tensor/error_text.h"

namespace sluice {
namespace {

// Bytes that come to or go from memory of `kind`, by what is written.
int64_t BytesOf(const OwnedBatch& batch, DeviceKind kind) {
  int64_t bytes = 0;
  for (const StridedCopy& copy : batch.copies()) {
    if (copy.src_kind != kind && copy.dst_kind != kind) continue;
    bytes += (copy.end - copy.begin) * DTypeBytes(copy.dst_dtype);
  }
  for (const Reduction& reduction : batch.reductions()) {
    if (reduction.src_kind != kind && reduction.dst_kind != kind) continue;
    bytes += reduction.elements * DTypeBytes(reduction.dtype);
  }
  for (const Normalization& normalization : batch.normalizations()) {
    if (normalization.src_kind != kind && normalization.dst_kind != kind) continue;
    bytes += normalization.elements * DTypeBytes(normalization.dst_dtype);
  }
  return bytes;
}

constexpr int64_t kNsPerSecond = 1'000'000'000;

void SleepUntil(int64_t ns) {
  const timespec until = {ns / kNsPerSecond, ns % kNsPerSecond};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) {
  }
}

// How many marks the thread has still to come past.
struct Marks {
  std::mutex mutex;
  std::condition_variable passed;
  int ahead = 0;

  void Add() {
    const std::lock_guard lock(mutex);
    ++ahead;
  }
  void Pass() {
    const std::lock_guard lock(mutex);
    if (--ahead == 0) passed.notify_all();
  }
  void Wait() {
    std::unique_lock lock(mutex);
    passed.wait(lock, [this] { return ahead == 0; });
  }
};

// A stream is whatever thread calls, which is past all that it has done.
class EmulatedFence final : public Fence {
 public:
  absl::Status Record(StreamHandle) override { return absl::OkStatus(); }
  absl::Status HoldBack(StreamHandle) override {
    marks_->Wait();
    return absl::OkStatus();
  }
  absl::StatusOr<bool> Passed() override {
    const std::lock_guard lock(marks_->mutex);
    return marks_->ahead == 0;
  }
  const std::shared_ptr<Marks>& marks() const { return marks_; }

 private:
  const std::shared_ptr<Marks> marks_ = std::make_shared<Marks>();  // batches may outlive the fence
};

class EmulatedDevice final : public Device {
 public:
  explicit EmulatedDevice(double bytes_per_s)
      : Device({.staging = DeviceKind::kCpu, .buffers = kEmulatedDevice}),
        bytes_per_s_(bytes_per_s) {}
  ~EmulatedDevice() override;
  absl::Status StartThread();

  absl::StatusOr<DeviceMemory> AllocateStaging(size_t bytes) override {
    return MapHostMemory(bytes, "staging memory");
  }
  absl::StatusOr<DeviceMemory> AllocateBuffer(size_t bytes) override {
    return MapHostMemory(bytes, "buffer memory");
  }
  absl::StatusOr<std::unique_ptr<Fence>> MakeFence() override {
    return std::make_unique<EmulatedFence>();
  }
  absl::Status Start(const CopyBatch& batch) override;
  absl::StatusOr<int> Poll(absl::Span<uint64_t> cookies) override;
  std::vector<DeviceSpan> TakeSpans() override { return {}; }

 private:
  struct Queued {
    OwnedBatch batch;
    std::shared_ptr<Marks> after;
    std::shared_ptr<Marks> then;
  };
  void Work();
  void CarryOut(const Queued& queued);
  Queued& At(uint64_t number) { return ring_[number % ring_.size()]; }

  const double bytes_per_s_;
  int64_t free_ns_ = 0;  // the thread's: when the device is past what it has copied
  std::thread thread_;

  std::mutex mutex_;
  std::condition_variable work_;
  bool ending_ = false;
  // Batches by number: those before polled_ are gone, those before done_ complete, and those before
  // started_ in the ring.
  uint64_t polled_ = 0;
  uint64_t done_ = 0;
  uint64_t started_ = 0;
  std::array<Queued, kMaxOutstanding> ring_;
};

absl::Status EmulatedDevice::StartThread() {
  // Signals are the program's.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  absl::Status status;
  try {
    thread_ = std::thread([this] { Work(); });
  } catch (const std::system_error& error) {
    status = absl::UnavailableError(
        absl::StrCat("no thread for an emulated device: ", error.code().message()));
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return status;
}

EmulatedDevice::~EmulatedDevice() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  work_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void EmulatedDevice::Work() {
  pthread_setname_np(pthread_self(), "emulated copy");
  std::unique_lock lock(mutex_);
  while (true) {
    work_.wait(lock, [this] { return ending_ || done_ < started_; });
    if (done_ == started_) return;
    Queued& queued = At(done_);
    lock.unlock();
    CarryOut(queued);
    lock.lock();
    ++done_;
  }
}

void EmulatedDevice::CarryOut(const Queued& queued) {
  if (queued.after != nullptr) queued.after->Wait();
  const int64_t begin_ns = MonotonicNs();
  const OwnedBatch& batch = queued.batch;
  sluice::CarryOut({.copies = batch.copies(),
                    .reductions = batch.reductions(),
                    .normalizations = batch.normalizations()});
  if (bytes_per_s_ > 0) {
    const double seconds = static_cast<double>(BytesOf(batch, kEmulatedDevice)) / bytes_per_s_;
    free_ns_ = std::max(free_ns_, begin_ns) + static_cast<int64_t>(seconds * kNsPerSecond);
    SleepUntil(free_ns_);
  }
  if (queued.then != nullptr) queued.then->Pass();
}

absl::Status EmulatedDevice::Start(const CopyBatch& batch) {
  {
    const std::lock_guard lock(mutex_);
    if (started_ - polled_ == ring_.size()) {
      return absl::ResourceExhaustedError(
          absl::StrCat(kMaxOutstanding, " copy batches are waiting to be polled"));
    }
  }
  const auto marks_of = [](Fence* fence) {
    return fence == nullptr ? nullptr : static_cast<EmulatedFence*>(fence)->marks();
  };
  Queued& queued = At(started_);  // the thread is not there yet
  queued.batch.Assign(batch);
  queued.after = marks_of(batch.after);
  queued.then = marks_of(batch.then);
  if (queued.then != nullptr) queued.then->Add();
  {
    const std::lock_guard lock(mutex_);
    ++started_;
  }
  work_.notify_one();
  return absl::OkStatus();
}

absl::StatusOr<int> EmulatedDevice::Poll(absl::Span<uint64_t> cookies) {
  const std::lock_guard lock(mutex_);
  const size_t count = std::min<size_t>(cookies.size(), done_ - polled_);
  for (uint64_t& cookie : cookies.first(count)) cookie = At(polled_++).batch.cookie();
  return static_cast<int>(count);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Device>> MakeEmulatedDevice(double bytes_per_s) {
  auto device = std::make_unique<EmulatedDevice>(bytes_per_s);
  SLUICE_RETURN_IF_ERROR(device->StartThread());
  return device;
}

}  // namespace sluice
