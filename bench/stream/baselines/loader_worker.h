// One worker of a loader with threads: reads its items one after the other into a ring of its own.
#ifndef SLUICE_BENCH_STREAM_BASELINES_LOADER_WORKER_H_
#define SLUICE_BENCH_STREAM_BASELINES_LOADER_WORKER_H_

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "device/device.h"
#include "session/stream/stream_source.h"
#include "stream/baselines/baseline.h"
#include "stream/baselines/plain_reader.h"
#include "stream/outcome.h"

namespace sluice::bench {

// What a worker does of the whole: items number, number + workers, ... of the first `items` of a
// rank's order.
struct LoaderShare {
  int number = 0;
  int workers = 1;
  int ahead = 1;  // most items that are there or being read, and not yet consumed
  int64_t items = 0;
};

// Thread: the consumer's, but for the one that it makes.
class LoaderWorker {
 public:
  // `opened` is this worker's own. ResourceExhausted if there is no memory.
  static absl::StatusOr<std::unique_ptr<LoaderWorker>> Make(const BaselineJob& job,
                                                            const LoaderShare& share,
                                                            OpenedSource opened);
  ~LoaderWorker();  // waits for a read that is under way
  void Start();

  // Waits until its next item is there. `*waited`: it was not. The worker's error, or
  // DeadlineExceeded.
  absl::Status Take(absl::Duration timeout, bool* waited);
  // The item that was taken, which is at `position`: checks it and computes with it, then gives its
  // memory back.
  void Consume(int64_t position, Consumer* consumer);
  // Begins no more reads. Not waited for.
  void Stop();
  // After Stop or the last item: waits for the thread to end, and adds what it did.
  void JoinAndAdd(RankOutcome* outcome);

 private:
  LoaderWorker(const BaselineJob& job, const LoaderShare& share, OpenedSource opened);

  void Work();
  absl::Status Load(int64_t item, std::byte* cell);
  std::byte* CellOf(int64_t index) const {
    return cells_.data() + index % share_.ahead * cell_bytes_;
  }

  const StreamOptions& stream_;
  const StreamPlan plan_;
  const LoaderShare share_;
  DeviceMemory block_;
  DeviceMemory cells_;
  std::unique_ptr<StreamItems> items_;
  std::unique_ptr<Source> source_;
  PlainReader reader_;
  int64_t block_bytes_ = 0;
  int64_t cell_bytes_ = 0;

  std::mutex mutex_;  // for what follows
  std::condition_variable change_;
  int64_t begun_ = 0;  // items of this worker's share
  int64_t loaded_ = 0;
  int64_t consumed_ = 0;
  bool stop_ = false;
  absl::Status status_;
  int64_t held_peak_ = 0;

  int64_t copying_ns_ = 0;  // the thread's
  std::thread thread_;
};

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_STREAM_BASELINES_LOADER_WORKER_H_
