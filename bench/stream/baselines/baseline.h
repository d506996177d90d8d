// Plain ways to load items, as a user would write them without Sluice: to compare with.
//
// They read through the same sources as Sluice's streams, so that storage, latency and faults are
// the same for both: an item's fate follows from its number and the attempt. They exchange nothing
// between ranks and hedge nothing.
#ifndef SLUICE_BENCH_STREAM_BASELINES_BASELINE_H_
#define SLUICE_BENCH_STREAM_BASELINES_BASELINE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "plan/shard/stream_plan.h"
#include "session/stream/stream_items.h"
#include "session/stream/stream_source.h"
#include "sluice/stream.h"
#include "sluice/tensor.h"
#include "sluice/testing.h"
#include "storage/source.h"
#include "stream/consumer.h"
#include "stream/outcome.h"

namespace sluice::bench {

// Reads that are begun together and waited for, with retries: the least that any loader does.
//
// Thread: one.
class PlainReader {
 public:
  // `source` must outlive this object.
  PlainReader(Source* source, const RetryOptions& retry) : source_(source), retry_(retry) {}

  // Carries out all of `ops`, whose cookies and attempts it sets, and blocks until none is under
  // way. `data`: where the bytes of each are then. An op of 0 bytes is nothing to read. What is
  // transient or late is tried again with the others of its kind.
  absl::Status Read(absl::Span<ReadOp> ops, std::vector<const std::byte*>* data);

  int64_t retries() const { return retries_; }
  int64_t reading_ns() const { return reading_ns_; }  // sum over reads

 private:
  absl::Status ReadOnce(absl::Span<ReadOp> ops, const std::vector<size_t>& which,
                        std::vector<const std::byte*>* data, std::vector<size_t>* again,
                        absl::Status* cause);
  // Sleeps until the source may have something, or `until_ns`.
  void Wait(int64_t until_ns) const;

  Source* const source_;
  const RetryOptions retry_;
  int64_t retries_ = 0;
  int64_t reading_ns_ = 0;
};

struct BaselineJob {
  const StreamOptions* stream = nullptr;  // this rank's
  InjectedDelay delay;                    // of its source
  StreamPlan plan;                        // what it asks for
  Consumer* consumer = nullptr;           // started
};

// One wave at a time: as many reads as Sluice would have slots begin at once, all are waited for,
// all are consumed in order; then the next wave. With pieces as Sluice cuts them.
absl::Status RunSerial(const BaselineJob& job, RankOutcome* outcome);

// Waves over a budget in `slabs` equal slabs. A thread fills one slab at a time: all reads of it
// begin at once, and are waited for. It goes on with the next free slab, while the consumer takes
// the full ones in order. So the reads of one slab are in flight, whatever the number of slabs is.
absl::Status RunWaves(const BaselineJob& job, int slabs, RankOutcome* outcome);

// A loader as PyTorch's DataLoader, of `workers` threads. Thread w loads the items at places w, w +
// workers, ... of this rank's order, one blocking read after the other. It is at most `ahead` items
// ahead of the consumer, who takes them in order. A worker also does the transform.
absl::Status RunThreads(const BaselineJob& job, int workers, int ahead, RankOutcome* outcome);

// What a program does without a stream: makes an item, consumes it, makes the next one. Of a
// generator, without a transform.
absl::Status RunLoop(const BaselineJob& job, RankOutcome* outcome);

// A reader of the job's source and its items. The index is read again, as loaders do.
absl::StatusOr<OpenedSource> OpenBaselineSource(const StreamOptions& stream,
                                                const InjectedDelay& delay, int in_flight_max);
// The same without looking for the items again.
absl::StatusOr<OpenedSource> OpenBaselineSource(const StreamOptions& stream,
                                                const InjectedDelay& delay, const Catalog& catalog,
                                                int in_flight_max);

// Copies `bytes` of an item, from `offset` on, to their place in `cell`; transforms them on the
// way. The library has checked the transform.
void CopyToCell(const absl::optional<ItemTransform>& transform, const StreamItems& items,
                int64_t item, const std::byte* src, int64_t offset, int64_t bytes, std::byte* cell);

// The whole item, once it is there.
TensorView ViewOfCell(const absl::optional<ItemTransform>& transform, const StreamItems& items,
                      int64_t item, std::byte* cell);

// Adds what a source and its reader have done.
void AddReads(const SourceCounters& counters, const PlainReader& reader, int64_t copying_ns,
              StreamStats* stats);

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_STREAM_BASELINES_BASELINE_H_
