// The three streams of a device, and the order between what is issued to them.
//
//   fill:      packs buckets. Does all batches that keep the order with every other batch.
//   transport: does what a transport does in stream order.
//   drain:     unpacks buckets. Copies within the rank.
//
// So a bucket is packed while another one moves and a third one is unpacked. Streams wait only for
// what some stream was given before: so no such waits can make a circle, on one rank or between
// ranks.
#ifndef SLUICE_SRC_DEVICE_CUDA_CUDA_LANES_H_
#define SLUICE_SRC_DEVICE_CUDA_CUDA_LANES_H_

#include <cuda_runtime_api.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "device/cuda/cuda_event.h"
#include "device/cuda/cuda_issuer.h"
#include "device/cuda/cuda_spans.h"
#include "device/cuda/cuda_stream.h"
#include "device/device.h"
#include "device/owned_batch.h"

namespace sluice {

// The lane that issues a batch. A lane issues its batches one after the other.
enum class CudaLane : uint8_t { kFill, kDrain };

// The places that streams have to pass before a batch is complete.
class CudaBatchEnd {
 public:
  // Makes the event that every batch needs.
  absl::Status Prepare();
  // True once all that was recorded last has been passed.
  absl::StatusOr<bool> Passed() const;

 private:
  friend class CudaLanes;
  // One more place that has to be passed, since Clear. Events are finite, so those that only a
  // batch of nothing needs are made when there is one.
  absl::Status Record(cudaStream_t stream);
  void Clear() { count_ = 0; }

  std::array<UniqueCudaEvent, 3> events_;
  size_t count_ = 0;  // the number of events that are recorded
};

// The device is current in all calls.
class CudaLanes {
 public:
  // `bounce_bytes` of pinned memory in all.
  static absl::StatusOr<std::unique_ptr<CudaLanes>> Create(int ordinal, int64_t bounce_bytes,
                                                           bool record_spans);
  // Nothing may be under way.
  ~CudaLanes() = default;

  cudaStream_t fill_stream() const { return fill_.stream->get(); }
  cudaStream_t transport_stream() const { return transport_->get(); }
  cudaStream_t drain_stream() const { return drain_.stream->get(); }

  // A batch that keeps the order with all others is begun only once all before it are issued, and
  // issued before another one is begun.
  static bool KeepsOrder(const OwnedBatch& batch) { return batch.stage() == BatchStage::kAny; }
  static CudaLane LaneOf(const OwnedBatch& batch) {
    return batch.stage() == BatchStage::kDrain ? CudaLane::kDrain : CudaLane::kFill;
  }

  // Begins a batch or goes on with it, as far as that goes without waiting. True once all that the
  // host does of the batch is done, and all else is on a stream. Until then it must stay as it is.
  absl::StatusOr<bool> Issue(const OwnedBatch& batch);

  // Whether a stream has anything to be waited for of `batch`, which was issued last. If so,
  // RecordEnd has `end` say when the batch is complete.
  bool IsOnStream(const OwnedBatch& batch) const;
  absl::Status RecordEnd(const OwnedBatch& batch, CudaBatchEnd* end);

  // Begins a piece of the transport's work, after what batches have put on the fill stream. Returns
  // the piece's number, from 1 on.
  absl::StatusOr<uint64_t> HoldBackTransport();
  // The session has been told that the transport's work up to number `number` is in the transport's
  // stream. Batches that are begun later come after this work, and after nothing more of the
  // transport's.
  void TransportHandedOut(uint64_t number);

  // No stream has work any more.
  bool IsIdle() const;

  // Adds what was recorded.
  absl::Status TakeSpans(std::vector<DeviceSpan>* spans);

 private:
  struct Lane {
    std::unique_ptr<CudaStream> stream;
    std::unique_ptr<CudaIssuer> issuer;
    std::unique_ptr<CudaSpans> spans;  // null: not recorded
    bool begun = false;                // a batch
  };

  static absl::Status PrepareLane(int ordinal, int64_t bounce_bytes, bool record_spans, Lane* lane);
  absl::Status Begin(const OwnedBatch& batch, Lane* lane);
  absl::Status End(const OwnedBatch& batch, Lane* lane);
  // Puts later work of `stream` behind what the transport has handed out.
  absl::Status ComeAfterTransport(CudaStream* stream);
  void DropEnds();
  Lane& At(CudaLane lane) { return lane == CudaLane::kFill ? fill_ : drain_; }
  const Lane& At(CudaLane lane) const { return lane == CudaLane::kFill ? fill_ : drain_; }

  Lane fill_;
  Lane drain_;
  std::unique_ptr<CudaStream> transport_;
  // The transport's work by number: what has begun and what was handed out. Also where each ends of
  // what was begun but not handed out, beside the last. `spare_` are events for that.
  uint64_t transport_begun_ = 0;
  uint64_t transport_handed_out_ = 0;
  std::deque<UniqueCudaEvent> transport_ends_;  // from the last that was handed out on
  std::vector<UniqueCudaEvent> spare_;
  // The streams of these names have work that the other one has not been put behind.
  bool fill_is_ahead_of_transport_ = false;
  bool fill_is_ahead_of_drain_ = false;  // by a batch that keeps the order
  bool drain_is_ahead_of_fill_ = false;
};

}  // namespace sluice

#endif  // SLUICE_SRC_DEVICE_CUDA_CUDA_LANES_H_
