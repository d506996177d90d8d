// Parts of copies, which the calling thread and its helpers take in turns.
#include "session/base/team_device.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "device/strided_copy.h"
#include "sluice/tensor.h"
#include "storage/own_thread.h"
#include "tensor/contiguity.h"
#include "tensor/round.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23  // of Linux 5.14, and of younger headers
#endif

namespace sluice {
namespace {

// Parts are small enough for all threads to end at about the same time.
constexpr int64_t kPartsOfThread = 2;
constexpr int64_t kPartBytesMin = int64_t{1} << 17;

int64_t ElementBytes(const StridedCopy& copy) {
  return std::max(DTypeBytes(copy.src_dtype), DTypeBytes(copy.dst_dtype));
}

// Has the system put pages under all that a part writes, which is quicker than one by one. Only
// where the part writes all of them. Old kernels refuse, and nothing is lost.
void FetchPages(const StridedCopy& part) {
  static const auto kPageBytes = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const int64_t offset = ContiguousOffset(DstSide(part), part.begin, part.end);
  if (offset < 0) return;
  const auto first = reinterpret_cast<uintptr_t>(part.dst + offset);
  const uintptr_t end =
      first + static_cast<uintptr_t>((part.end - part.begin) * DTypeBytes(part.dst_dtype));
  const uintptr_t begin = RoundUp(first, kPageBytes);
  const uintptr_t whole = end / kPageBytes * kPageBytes;
  if (begin >= whole) return;
  madvise(reinterpret_cast<void*>(begin), whole - begin, MADV_POPULATE_WRITE);  // NOLINT
}

// Pages of a file that a source has lent may be gone: see storage/file/bus_guard.h. A SIGBUS that
// is blocked ends the process.
void UnblockBusError() {
  sigset_t bus_error;
  sigemptyset(&bus_error);
  sigaddset(&bus_error, SIGBUS);
  pthread_sigmask(SIG_UNBLOCK, &bus_error, nullptr);
}

class TeamDevice final : public Device {
 public:
  TeamDevice(std::unique_ptr<Device> host, int helpers)
      : Device(host->traits()), host_(std::move(host)), helpers_max_(helpers) {
    // A batch needs no allocation.
    parts_.reserve(traits().batch_items + static_cast<size_t>((helpers + 1) * kPartsOfThread));
  }
  ~TeamDevice() override {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      stop_ = true;
    }
    work_.notify_all();
    for (std::thread& helper : helpers_) helper.join();
  }

  absl::StatusOr<DeviceMemory> AllocateStaging(size_t bytes) override {
    return host_->AllocateStaging(bytes);
  }
  absl::StatusOr<DeviceMemory> AllocateBuffer(size_t bytes) override {
    return host_->AllocateBuffer(bytes);
  }
  absl::StatusOr<std::unique_ptr<Fence>> MakeFence() override { return host_->MakeFence(); }
  absl::StatusOr<int> Poll(absl::Span<uint64_t> cookies) override { return host_->Poll(cookies); }
  std::vector<DeviceSpan> TakeSpans() override { return host_->TakeSpans(); }

  absl::Status Start(const CopyBatch& batch) override {
    int64_t bytes = 0;
    for (const StridedCopy& copy : batch.copies) {
      bytes += (copy.end - copy.begin) * ElementBytes(copy);
    }
    const bool copies_only = batch.reductions.empty() && batch.normalizations.empty();
    if (bytes < kTeamBytesMin || !copies_only) return host_->Start(batch);
    // First, as it may have no room for the batch.
    CopyBatch rest = batch;
    rest.copies = {};
    if (absl::Status status = host_->Start(rest); !status.ok()) return status;
    Cut(batch.copies, bytes);
    StartHelpers();
    CopyTogether();
    return absl::OkStatus();
  }

 private:
  void Cut(absl::Span<const StridedCopy> copies, int64_t bytes) {
    parts_.clear();
    const int64_t part_bytes =
        std::max(kPartBytesMin, bytes / ((helpers_max_ + 1) * kPartsOfThread));
    for (const StridedCopy& copy : copies) {
      const int64_t step = std::max<int64_t>(1, part_bytes / ElementBytes(copy));
      for (int64_t begin = copy.begin; begin < copy.end; begin += step) {
        parts_.push_back(copy);
        parts_.back().begin = begin;
        parts_.back().end = std::min(copy.end, begin + step);
      }
    }
  }

  // The calling thread does without those that the system does not give.
  void StartHelpers() {
    if (started_) return;
    started_ = true;
    for (int i = 0; i < helpers_max_; ++i) {
      absl::StatusOr<std::thread> helper = StartOwnThread([this] { Help(); }, "sluice-copy");
      if (!helper.ok()) return;
      helpers_.push_back(*std::move(helper));
    }
  }

  void CopyTogether() {
    next_.store(0, std::memory_order_relaxed);
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      open_ = true;
    }
    work_.notify_all();
    CopyParts();
    std::unique_lock<std::mutex> lock(mutex_);
    open_ = false;  // a helper that wakes now finds nothing
    idle_.wait(lock, [this] { return inside_ == 0; });
  }

  void CopyParts() {
    for (size_t i = 0; (i = next_.fetch_add(1, std::memory_order_relaxed)) < parts_.size();) {
      FetchPages(parts_[i]);
      CopyStrided(parts_[i]);
    }
  }

  void Help() {
    UnblockBusError();
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      work_.wait(lock, [this] { return open_ || stop_; });
      if (stop_) return;
      ++inside_;
      lock.unlock();
      CopyParts();
      lock.lock();
      open_ = false;  // all parts are taken
      if (--inside_ == 0) idle_.notify_one();
    }
  }

  const std::unique_ptr<Device> host_;
  const int helpers_max_;
  bool started_ = false;
  std::vector<StridedCopy> parts_;
  std::atomic<size_t> next_{0};
  std::mutex mutex_;
  std::condition_variable work_;
  std::condition_variable idle_;
  bool open_ = false;  // there are parts to take
  bool stop_ = false;
  int inside_ = 0;  // helpers that look at parts_
  std::vector<std::thread> helpers_;
};

}  // namespace

std::unique_ptr<Device> MakeTeamDevice(int helpers) {
  if (helpers <= 0) return MakeHostDevice();
  return std::make_unique<TeamDevice>(MakeHostDevice(), helpers);
}

int HelpersOf(int64_t ranks) {
  cpu_set_t cpus;
  // It fails where the system has more CPUs than fit.
  const int usable =
      sched_getaffinity(0, sizeof(cpus), &cpus) == 0 ? CPU_COUNT(&cpus) : CPU_SETSIZE;
  const int64_t each = usable / std::max<int64_t>(1, ranks);
  return static_cast<int>(std::clamp<int64_t>(each - 1, 0, kHelpersMax));
}

}  // namespace sluice
