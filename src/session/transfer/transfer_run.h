// One run of a transfer on this rank: its memory, how far it has got, and what it reports. Used
// again for later runs, so that these allocate nothing.
//
// Moves nothing; the runner does that, and says here what is done.
#ifndef SLUICE_SRC_SESSION_TRANSFER_TRANSFER_RUN_H_
#define SLUICE_SRC_SESSION_TRANSFER_TRANSFER_RUN_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "device/device.h"
#include "plan/bucket.h"
#include "session/base/memory_uses.h"
#include "session/base/run_id.h"
#include "session/base/views.h"
#include "session/transfer/compiled_transfer.h"
#include "session/transfer/copy_program.h"
#include "session/transfer/run_stream.h"
#include "sluice/accelerator.h"
#include "sluice/session.h"

namespace sluice {

// An event on its way to the caller.
struct RunEvent {
  Event event;  // without its run
  RunId run = 0;
  // A mark of the run's RunStream, whose HoldBack has to come before the event is given out; 0:
  // none.
  uint64_t mark = 0;
};

class TransferRun {
 public:
  // Both must outlive the run. Events, if a run asks for them, go to `events`.
  TransferRun(const CompiledTransfer* transfer, std::deque<RunEvent>* events);

  // Begins anew, as run `id`.
  void Reset(RunId id, const StartOptions& options);

  const CompiledTransfer& transfer() const { return transfer_; }
  RunId id() const { return id_; }
  int lane() const { return transfer_.lane; }

  // Checks views and takes them. Nothing has changed after an error. The same `binding` as before
  // says that the views are the same. Then they are not checked again, unless other memory lies at
  // their addresses by now. A `binding` of 0 says nothing.
  absl::Status Bind(absl::Span<const TensorView> src, absl::Span<const TensorView> dst,
                    int64_t binding = 0);
  absl::Status Supply(int tensor, const TensorView& dst);
  bool late_destinations() const { return late_destinations_; }
  // Holds for the views that the run has.
  CopyProgram* program() { return &program_; }
  absl::Span<const BoundView> src() const { return src_; }
  absl::Span<const BoundView> dst() const { return dst_; }
  // Their bases, side by side.
  absl::Span<std::byte* const> src_bases() const { return src_bases_; }
  absl::Span<std::byte* const> dst_bases() const { return dst_bases_; }
  // Whether messages can be sent from where the tensor's source, or destination, lies. False where
  // this rank sends none.
  bool CanSendSrc(int tensor) const { return src_can_be_sent_[static_cast<size_t>(tensor)]; }
  bool CanSendDst(int tensor) const { return dst_can_be_sent_[static_cast<size_t>(tensor)]; }

  // To be called once all ranks have found their views good: from then on it can be fed.
  void Release();

  // True if bucket next_bucket() may be submitted: it is there, and its window is open.
  bool CanFeed() const { return next_bucket_ < open_end_ && !stream_.waits(); }
  size_t next_bucket() const { return next_bucket_; }
  void Fed() { ++next_bucket_; }
  size_t end() const { return end_; }  // buckets before this one are going to be fed
  bool fed() const { return released_ && next_bucket_ == end_; }
  // True if the destination has no memory yet. As `CanSendSrc` and the spans above, and whatever
  // is private here, of a tensor of the plan.
  bool Lacks(int tensor) const {
    const size_t t = static_cast<size_t>(tensor);
    return late_[t] && !over_[t] && dst_[t].base == nullptr;
  }
  // The first of the caller's tensors whose memory the run waits for; -1 if it waits for none.
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

  // A stream of the caller's that the run takes part in. The run begins after what the stream held
  // at Start, and each window after what the stream held when its memory was given. Work that the
  // stream gets later comes after the tensors that were reported, and after the run that has ended.
  bool in_stream() const { return stream_.is_there(); }
  // After Bind.
  absl::Status BeginInStream(Device* device, const RunStream::Ways& ways);
  // Gets the streams to where they let the run go on; true if that did anything.
  absl::StatusOr<bool> AdvanceInStream(CopyQueue* copies);
  // Ends a run that is done. True once the stream comes after all of the run, and all is reported.
  // Call it again if not.
  absl::StatusOr<bool> EndInStream(CopyQueue* copies);
  // Puts all that the stream gets from now on behind the work that an event with this mark reports.
  absl::Status HoldBack(uint64_t mark) { return stream_.HoldBack(mark); }
  // True while work of the run's is behind the stream, which has not come to it.
  bool IsHeldBack() const { return stream_.IsHeldBack(); }
  // As in RunStream.
  void HandOver(std::vector<std::unique_ptr<Fence>>* marks) { stream_.HandOver(marks); }
  // Nothing is fed while this is true.
  bool waits_for_stream() const { return stream_.waits(); }

  // Reports a failure, if events are asked for.
  void Fail(const absl::Status& status);

 private:
  absl::Status BindViews(absl::Span<const TensorView> src, absl::Span<const TensorView> dst);
  // Whether the last views of a run without late destinations were these.
  bool AreBound(absl::Span<const TensorView> views, bool is_dst) const;
  void SetDst(size_t part, const BoundView& view) {
    dst_[part] = view;
    dst_bases_[part] = view.base;
  }
  absl::Status BindSide(absl::Span<const TensorView> views, bool is_dst);
  // Names, in an error, the caller's tensor whose view is wrong.
  absl::Status Explain(const absl::Status& status, bool is_dst, size_t tensor) const;
  absl::Status CheckSupply(int tensor) const;
  absl::Status TakeSupplied(size_t tensor);
  absl::Status CheckShared(size_t tensor, const BoundView& dst);
  bool OnDeviceOnly() const;
  void OpenWindows();
  bool AskForMemory(const CompiledTransfer::Window& window);
  void ReportUnreported(size_t count, uint64_t mark);
  void ReportTensor(size_t tensor, uint64_t mark = 0);
  void Report(Event::Kind kind, int tensor, absl::Status status, uint64_t mark = 0);

  const CompiledTransfer& transfer_;
  std::deque<RunEvent>* const events_;
  RunId id_ = 0;
  bool reports_ = false;
  bool late_destinations_ = false;
  RunStream stream_;
  // Tensors whose work is all in the session's stream; the first `marked_` of them before a mark
  // that is under way.
  std::vector<int> unreported_;
  size_t marked_ = 0;

  // Whether the allocations that src_ and dst_ were found in are still there.
  bool HasSameRanges() const;
  void FindRanges();

  std::map<const std::byte*, MemoryRange> ranges_;  // of device memory of src_ and dst_, by begin
  int64_t binding_ = 0;  // of src_ and dst_, where none of them came late; else 0
  std::vector<BoundView> src_;
  std::vector<BoundView> dst_;
  std::vector<std::byte*> src_bases_;
  std::vector<std::byte*> dst_bases_;
  std::vector<BoundView> candidate_;  // scratch
  CopyProgram program_;
  std::vector<bool> src_can_be_sent_;
  std::vector<bool> dst_can_be_sent_;
  // Memory of tensors that are not over, once there is a Supply.
  MemoryUses uses_;
  bool uses_known_ = false;
  // Per tensor: its destination comes, or has come, through Supply.
  std::vector<bool> late_;
  std::vector<bool> over_;            // per tensor: done here
  std::vector<int64_t> chunks_left_;  // per tensor
  std::vector<int32_t> parts_left_;   // of each of the caller's tensors: not over

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

#endif  // SLUICE_SRC_SESSION_TRANSFER_TRANSFER_RUN_H_
