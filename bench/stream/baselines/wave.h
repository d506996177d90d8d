// Waves of reads: pieces that are begun together, waited for, and then consumed in order.
#ifndef SLUICE_BENCH_STREAM_BASELINES_WAVE_H_
#define SLUICE_BENCH_STREAM_BASELINES_WAVE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "device/device.h"
#include "plan/shard/stream_plan.h"
#include "session/stream/stream_limits.h"
#include "storage/source.h"
#include "stream/baselines/baseline.h"
#include "stream/baselines/plain_reader.h"
#include "stream/outcome.h"

namespace sluice::bench {

// What one slab holds. The memory is the reader's.
struct Wave {
  struct Piece {
    int64_t position = 0;
    int64_t item = 0;
    int64_t offset = 0;  // in the item
    int64_t bytes = 0;
    bool last = false;  // of its item
  };
  std::vector<Piece> pieces;
  std::vector<ReadOp> ops;
  std::vector<const std::byte*> data;
};

// Cuts items into pieces as Sluice does, and the budget into slabs.
//
// Thread: Open first. Then Fill and AllBegun belong to one thread, and Consume to one, which may be
// another. A wave is filled before it is consumed, and its slab is filled again after that.
class WaveReader {
 public:
  // `job` must outlive this object.
  explicit WaveReader(const BaselineJob& job)
      : job_(job), plan_(job.plan), position_(plan_.NextPosition(0)) {}

  // InvalidArgument if the budget has fewer slots than `slabs`.
  absl::Status Open(int slabs);

  // All items that are wanted have been read.
  bool AllBegun() const { return planned_ >= job_.consumer->wanted(); }
  // The next pieces, as many as slab number `slab` has slots, or fewer at the end. Blocks until all
  // have been read.
  absl::Status Fill(int slab, Wave* wave);

  // In order. `waited`: the consumer had to wait for this wave.
  void Consume(const Wave& wave, bool waited);

  // After both threads are done. Without Open, nothing.
  void AddTo(RankOutcome* outcome) const;

 private:
  void Plan(int slab, Wave* wave);

  const BaselineJob& job_;
  const StreamPlan plan_;
  StreamLimits limits_;
  int64_t slab_slots_ = 0;
  DeviceMemory blocks_;
  DeviceMemory cell_;  // of the item that is consumed
  std::unique_ptr<StreamItems> items_;
  std::unique_ptr<Source> source_;  // ends before the blocks do
  std::unique_ptr<PlainReader> reader_;

  int64_t position_;
  int64_t offset_ = 0;   // of the next piece in its item
  int64_t planned_ = 0;  // items
  int64_t held_peak_ = 0;
  std::atomic<int64_t> held_ = 0;  // slots

  bool waited_ = false;  // for a piece of the present item
  int64_t copying_ns_ = 0;
};

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_STREAM_BASELINES_WAVE_H_
