// One run of a transfer on this rank: its memory, how far it has got, and what it reports. Used
// again for later runs, so that these allocate nothing.
//
// Moves nothing; the runner does that, and says here what is done.
#ifndef SLUICE_SRC_SESSION_TRANSFER_RUN_H_
#define SLUICE_SRC_SESSION_TRANSFER_RUN_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "device/device.h"
#include "plan/bucket.h"
#include "session/compiled_transfer.h"
#include "session/memory_uses.h"
#include "session/views.h"
#include "sluice/session.h"

namespace sluice {

class TransferRun {
 public:
  // Both must outlive the run. Events, if a run asks for them, go to `events`.
  TransferRun(const CompiledTransfer* transfer, std::deque<Event>* events);

  // Begins anew, as run `id`.
  void Reset(Session::RunId id, const StartOptions& options);

  const CompiledTransfer& transfer() const { return transfer_; }
  Session::RunId id() const { return id_; }
  int lane() const { return transfer_.lane; }

  // Checks views and takes them. Nothing has changed after an error.
  absl::Status Bind(absl::Span<const TensorView> src, absl::Span<const TensorView> dst);
  absl::Status Supply(int tensor, const TensorView& dst);
  absl::Span<const BoundView> src() const { return src_; }
  absl::Span<const BoundView> dst() const { return dst_; }

  // To be called once all ranks have found their views good: from then on it can be fed.
  void Release();

  // True if bucket next_bucket() may be submitted: it is there, and its window is open.
  bool CanFeed() const { return next_bucket_ < open_end_ && !waits_for_stream_; }
  size_t next_bucket() const { return next_bucket_; }
  void Fed() { ++next_bucket_; }
  size_t end() const { return end_; }  // buckets before this one are going to be fed
  bool fed() const { return released_ && next_bucket_ == end_; }
  // True if the tensor's destination has no memory yet.
  bool Lacks(int tensor) const {
    const size_t t = static_cast<size_t>(tensor);
    return late_[t] && !over_[t] && dst_[t].base == nullptr;
  }
  // The first tensor whose memory the run waits for; -1 if it waits for none.
  int tensor_without_memory() const;

  // A bucket of this run is done.
  void BucketDone(size_t bucket);
  bool done() const { return released_ && finished_ == end_; }

  // Stops feeding until CutAt.
  void Freeze();
  bool frozen() const { return frozen_; }
  // Gives up all buckets above `last`. Memory is not waited for any more: what would have gone
  // there is received and dropped.
  void CutAt(const BucketId& last);
  bool cut() const { return cut_; }

  // A stream of the caller's that the run takes part in: begins after what that holds, and ends
  // before what it gets later.
  bool in_stream() const { return stream_.has_value(); }
  StreamHandle stream() const { return *stream_; }
  // Nothing is fed while this is true.
  bool waits_for_stream() const { return waits_for_stream_; }
  void set_waits_for_stream(bool waits) { waits_for_stream_ = waits; }
  // The number of the order that marks the run's end for its stream; 0: not given.
  int64_t end_order() const { return end_order_; }
  void set_end_order(int64_t order) { end_order_ = order; }
  // True if none of its tensors here is in host memory.
  bool OnDeviceOnly() const;
  // Made once, for all runs that this object is used for.
  absl::StatusOr<Fence*> BeginFence(Device* device) { return FenceOf(device, &begin_); }
  absl::StatusOr<Fence*> EndFence(Device* device) { return FenceOf(device, &end_fence_); }

  // Reports a failure, if events are asked for.
  void Fail(const absl::Status& status);

 private:
  static absl::StatusOr<Fence*> FenceOf(Device* device, std::unique_ptr<Fence>* fence);
  absl::Status BindSide(absl::Span<const TensorView> views, bool is_dst);
  absl::Status Explain(const absl::Status& status, bool is_dst, size_t tensor) const;
  absl::Status CheckShared(size_t tensor, const BoundView& dst);
  void OpenWindows();
  bool AskForMemory(const CompiledTransfer::Window& window);
  void ReportTensor(size_t tensor);
  void Report(Event::Kind kind, int tensor, absl::Status status);

  const CompiledTransfer& transfer_;
  std::deque<Event>* const events_;
  Session::RunId id_ = 0;
  bool reports_ = false;
  bool late_destinations_ = false;
  absl::optional<StreamHandle> stream_;
  bool waits_for_stream_ = false;
  int64_t end_order_ = 0;
  std::unique_ptr<Fence> begin_;
  std::unique_ptr<Fence> end_fence_;

  std::vector<BoundView> src_;
  std::vector<BoundView> dst_;
  std::vector<BoundView> candidate_;  // scratch
  // Of tensors that are not over, once there is a Supply.
  MemoryUses uses_;
  bool uses_known_ = false;
  // Per tensor: its destination comes, or has come, through Supply.
  std::vector<bool> late_;
  std::vector<bool> over_;            // per tensor: done here
  std::vector<int64_t> chunks_left_;  // per tensor

  bool released_ = false;
  bool frozen_ = false;
  bool cut_ = false;
  size_t next_bucket_ = 0;  // the first that is not submitted
  size_t open_end_ = 0;     // buckets before this may be
  size_t end_ = 0;          // buckets before this will be
  size_t finished_ = 0;
  size_t next_window_ = 0;  // the first that is not open
  bool asked_ = false;      // for what next_window_ lacks
};

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_TRANSFER_RUN_H_
