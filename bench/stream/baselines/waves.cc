// Slabs that one thread fills, one after the other, while those before are consumed.
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "stream/baselines/baseline.h"
#include "stream/baselines/wave.h"

namespace sluice::bench {
namespace {

// Thread: the consumer's, but for the one that it makes.
class Slabs {
 public:
  // `reader` is open, and must outlive this object.
  Slabs(WaveReader* reader, int count)
      : reader_(*reader), waves_(static_cast<size_t>(count)), thread_([this] { FillAll(); }) {}

  ~Slabs() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
      change_.notify_all();
    }
    thread_.join();  // after the wave that is under way
  }

  Slabs(const Slabs&) = delete;
  Slabs& operator=(const Slabs&) = delete;

  // Waits for the next wave and consumes it. The filling thread's error, or DeadlineExceeded.
  absl::Status ConsumeNext(absl::Duration timeout) {
    bool waited = false;
    {
      std::unique_lock lock(mutex_);
      const auto has_come = [this] { return filled_ > consumed_ || !status_.ok(); };
      waited = !has_come();
      if (!change_.wait_for(lock, absl::ToChronoNanoseconds(timeout), has_come)) {
        return absl::DeadlineExceededError(
            absl::StrCat("no wave has come for ", absl::FormatDuration(timeout)));
      }
      if (filled_ == consumed_) return status_;
    }
    reader_.Consume(WaveAt(consumed_), waited);
    const std::lock_guard lock(mutex_);
    ++consumed_;
    change_.notify_all();
    return absl::OkStatus();
  }

 private:
  Wave& WaveAt(uint64_t number) { return waves_[number % waves_.size()]; }

  void FillAll() {
    for (uint64_t number = 0; !reader_.AllBegun(); ++number) {
      {
        std::unique_lock lock(mutex_);
        change_.wait(lock, [&] { return stop_ || number - consumed_ < waves_.size(); });
        if (stop_) return;
      }
      const auto slab = static_cast<int>(number % waves_.size());
      absl::Status status = reader_.Fill(slab, &WaveAt(number));
      const std::lock_guard lock(mutex_);
      status_ = std::move(status);
      if (status_.ok()) ++filled_;
      change_.notify_all();
      if (!status_.ok()) return;
    }
  }

  WaveReader& reader_;
  std::vector<Wave> waves_;  // by slab

  std::mutex mutex_;  // for what follows; consumed_ is changed by the consumer alone
  std::condition_variable change_;
  uint64_t filled_ = 0;  // waves
  uint64_t consumed_ = 0;
  bool stop_ = false;
  absl::Status status_;

  std::thread thread_;  // begins when all of the above is there
};

}  // namespace

absl::Status RunWaves(const BaselineJob& job, int slabs, RankOutcome* outcome) {
  job.consumer->Asked();
  WaveReader reader(job);
  absl::Status status = reader.Open(slabs);
  if (status.ok()) {
    Slabs filled(&reader, slabs);
    while (status.ok() && !job.consumer->done()) {
      status = filled.ConsumeNext(job.stream->timeout);
    }
  }
  reader.AddTo(outcome);
  return status;
}

}  // namespace sluice::bench
