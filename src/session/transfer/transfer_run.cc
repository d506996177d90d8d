// Bookkeeping of a run: views, windows, events, and where it ends.
#include "session/transfer/transfer_run.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace sluice {
namespace {

// Of nothing, too.
bool IsOnDevice(const BoundView& view) {
  return view.base == nullptr || view.kind == DeviceKind::kCuda;
}

bool CanSend(const MemoryRules& rules, const BoundView& view) {
  return view.base != nullptr && CanSendFrom(rules, view.base, view.kind);
}

bool HasElements(const ViewNeed& need) {
  return std::find(need.shape.begin(), need.shape.end(), 0) == need.shape.end();
}

}  // namespace

TransferRun::TransferRun(const CompiledTransfer* transfer, std::deque<RunEvent>* events)
    : transfer_(*transfer), events_(events) {
  const size_t tensors = transfer->spec().tensors.size();
  src_.resize(tensors);
  dst_.resize(tensors);
  candidate_.resize(2 * tensors);
  src_can_be_sent_.resize(tensors);
  dst_can_be_sent_.resize(tensors);
  late_.resize(tensors);
}

void TransferRun::Reset(RunId id, const StartOptions& options) {
  id_ = id;
  reports_ = options.events || options.late_destinations;
  late_destinations_ = options.late_destinations;
  stream_.Reset(options.stream);
  unreported_.clear();
  marked_ = 0;
  const absl::Span<const int64_t> chunks = transfer_.tensor_chunks();
  chunks_left_.assign(chunks.begin(), chunks.end());
  over_.assign(src_.size(), false);
  uses_.Clear();
  uses_known_ = false;
  released_ = frozen_ = cut_ = asked_ = false;
  next_bucket_ = open_end_ = finished_ = next_window_ = 0;
  end_ = transfer_.plan().buckets.size();
}

absl::Status TransferRun::Bind(absl::Span<const TensorView> src, absl::Span<const TensorView> dst) {
  const size_t count = src_.size();
  if (src.size() != count || dst.size() != count) {
    return absl::InvalidArgumentError(absl::StrCat("the transfer has ", count, " tensors, but ",
                                                   src.size(), " source and ", dst.size(),
                                                   " destination views are given"));
  }
  for (size_t t = 0; t < count; ++t) {
    late_[t] =
        late_destinations_ && dst[t].data == nullptr && HasElements(transfer_.dst_needs()[t]);
  }
  if (absl::Status status = BindSide(src, false); !status.ok()) return status;
  if (absl::Status status = BindSide(dst, true); !status.ok()) return status;
  const auto middle = candidate_.begin() + static_cast<ptrdiff_t>(count);
  if (std::equal(candidate_.begin(), middle, src_.begin()) &&
      std::equal(middle, candidate_.end(), dst_.begin())) {
    return absl::OkStatus();  // the same views have been checked before
  }
  for (size_t i = 0; i < 2 * count; ++i) {
    const BoundView& view = candidate_[i];
    if (view.base == nullptr) continue;
    absl::Status status = CheckMemory(transfer_.memory, view.base, view.kind);
    if (!status.ok()) return Explain(status, i >= count, i % count);
  }
  const absl::Span<const BoundView> bound = candidate_;
  absl::Status status =
      CheckAliasing(bound.subspan(0, count), bound.subspan(count), transfer_.names());
  if (!status.ok()) return status;
  std::copy(candidate_.begin(), middle, src_.begin());
  std::copy(middle, candidate_.end(), dst_.begin());
  for (size_t t = 0; t < count; ++t) {
    src_can_be_sent_[t] = transfer_.SendsSrc(t) && CanSend(transfer_.memory, src_[t]);
    dst_can_be_sent_[t] = transfer_.SendsDst(t) && CanSend(transfer_.memory, dst_[t]);
  }
  return absl::OkStatus();
}

absl::Status TransferRun::BindSide(absl::Span<const TensorView> views, bool is_dst) {
  const absl::Span<const ViewNeed> needs = is_dst ? transfer_.dst_needs() : transfer_.src_needs();
  const size_t first = is_dst ? views.size() : 0;
  for (size_t t = 0; t < views.size(); ++t) {
    if (is_dst && late_[t]) {
      candidate_[first + t] = BoundView();
      continue;
    }
    absl::Status status =
        BindView(views[t], needs[t], transfer_.memory, is_dst, &candidate_[first + t]);
    if (!status.ok()) return Explain(status, is_dst, t);
  }
  return absl::OkStatus();
}

absl::Status TransferRun::Explain(const absl::Status& status, bool is_dst, size_t tensor) const {
  return absl::Status(status.code(),
                      absl::StrCat(is_dst ? "destination" : "source", " of tensor ", tensor, " '",
                                   transfer_.names()[tensor], "': ", status.message()));
}

absl::Status TransferRun::Supply(int tensor, const TensorView& dst) {
  const int count = static_cast<int>(dst_.size());
  if (tensor < 0 || tensor >= count) {
    return absl::InvalidArgumentError(
        absl::StrCat("run ", id_, " has no tensor ", tensor, ", only 0 .. ", count - 1));
  }
  const size_t t = static_cast<size_t>(tensor);
  if (cut_) return absl::FailedPreconditionError(absl::StrCat("run ", id_, " is cancelled"));
  if (!late_[t]) {
    return absl::FailedPreconditionError(absl::StrCat("tensor ", tensor, " '", transfer_.names()[t],
                                                      "' of run ", id_,
                                                      " waits for no memory on this rank"));
  }
  if (!Lacks(tensor)) {
    return absl::FailedPreconditionError(absl::StrCat("tensor ", tensor, " '", transfer_.names()[t],
                                                      "' of run ", id_, " has had its memory"));
  }
  BoundView bound;
  absl::Status status = BindView(dst, transfer_.dst_needs()[t], transfer_.memory, true, &bound);
  if (!status.ok()) return Explain(status, true, t);
  if (bound.base != nullptr) status = CheckMemory(transfer_.memory, bound.base, bound.kind);
  if (!status.ok()) return Explain(status, true, t);
  status = CheckShared(t, bound);
  if (!status.ok()) return status;
  status = stream_.Mark(transfer_.windows_of_tensors()[t], IsOnDevice(bound));
  if (!status.ok()) return Explain(status, true, t);
  uses_.Add({t, true}, bound);
  dst_[t] = bound;
  dst_can_be_sent_[t] = transfer_.SendsDst(t) && CanSend(transfer_.memory, bound);
  OpenWindows();
  return absl::OkStatus();
}

// Memory of tensors that are done may have become this one's.
absl::Status TransferRun::CheckShared(size_t tensor, const BoundView& dst) {
  if (!uses_known_) {
    for (size_t t = 0; t < dst_.size(); ++t) {
      if (over_[t]) continue;
      uses_.Add({t, false}, src_[t]);
      uses_.Add({t, true}, dst_[t]);
    }
    uses_known_ = true;
  }
  const absl::optional<ViewUse> other =
      uses_.FindOverlap(dst, [this](const ViewUse& use) -> const BoundView* {
        if (over_[use.tensor]) return nullptr;
        return use.is_dst ? &dst_[use.tensor] : &src_[use.tensor];
      });
  if (other) return SharedMemoryError(*other, {tensor, true}, transfer_.names());
  return absl::OkStatus();
}

bool TransferRun::OnDeviceOnly() const {
  return std::all_of(src_.begin(), src_.end(), IsOnDevice) &&
         std::all_of(dst_.begin(), dst_.end(), IsOnDevice);
}

// What is marked first holds for all windows: they follow one another in the session's stream.
absl::Status TransferRun::BeginInStream(Device* device, const RunStream::Ways& ways) {
  stream_.Begin(device, ways, transfer_.windows().size());
  return stream_.Mark(0, OnDeviceOnly());
}

absl::StatusOr<bool> TransferRun::AdvanceInStream(CopyQueue* copies) {
  const absl::StatusOr<bool> awaited = stream_.AwaitMarks(copies);
  if (!awaited.ok()) return awaited;
  bool moved = *awaited;
  if (marked_ > 0 && stream_.TakeMark(*copies)) {
    ReportUnreported(marked_, stream_.last_mark());
    moved = true;
  }
  if (unreported_.empty() || !stream_.CanBeginMark()) return moved;
  const absl::StatusOr<bool> begun = stream_.BeginMark(copies);
  if (!begun.ok() || !*begun) return begun.ok() ? moved : begun;
  marked_ = unreported_.size();
  return true;
}

absl::StatusOr<bool> TransferRun::EndInStream(CopyQueue* copies) {
  const absl::StatusOr<bool> ended = stream_.End(copies);
  if (ended.ok() && *ended) ReportUnreported(unreported_.size(), 0);
  return ended;
}

void TransferRun::Release() {
  released_ = true;
  OpenWindows();
}

// A window without late tensors opens with the one before it; others when that one is done.
void TransferRun::OpenWindows() {
  const absl::Span<const CompiledTransfer::Window> windows = transfer_.windows();
  while (released_ && !frozen_ && next_window_ < windows.size()) {
    const CompiledTransfer::Window& window = windows[next_window_];
    if (cut_ && window.first_bucket >= end_) return;
    if (!cut_ && !AskForMemory(window)) return;
    asked_ = false;
    stream_.Open(next_window_);
    ++next_window_;
    open_end_ = std::min(window.end_bucket, end_);
    for (int tensor : window.tensors) {
      if (chunks_left_[static_cast<size_t>(tensor)] == 0) {
        ReportTensor(static_cast<size_t>(tensor));
      }
    }
  }
}

// True if the window has all its memory.
bool TransferRun::AskForMemory(const CompiledTransfer::Window& window) {
  bool complete = true;
  bool late = false;
  for (int tensor : window.tensors) {
    late = late || late_[static_cast<size_t>(tensor)];
    complete = complete && !Lacks(tensor);
  }
  if (!late) return true;
  if (finished_ < window.first_bucket) return false;
  if (complete || asked_) return complete;
  // Their memory may become this window's.
  if (!unreported_.empty()) return false;
  asked_ = true;
  for (int tensor : window.tensors) {
    if (Lacks(tensor)) {
      Report(Event::Kind::kNeedsMemory, tensor, absl::OkStatus());
    }
  }
  return false;
}

int TransferRun::tensor_without_memory() const {
  if (!asked_) return -1;
  for (int tensor : transfer_.windows()[next_window_].tensors) {
    if (Lacks(tensor)) return tensor;
  }
  return -1;
}

void TransferRun::BucketDone(size_t bucket) {
  ++finished_;
  if (!reports_) return;
  const Plan& plan = transfer_.plan();
  const Bucket& of = plan.buckets[bucket];
  for (int32_t c = 0; c < of.chunk_count; ++c) {
    const int tensor = plan.chunks[static_cast<size_t>(of.first_chunk + c)].tensor;
    const size_t t = static_cast<size_t>(tensor);
    if (--chunks_left_[t] > 0 || Lacks(tensor)) continue;
    if (stream_.done_in_order()) {
      unreported_.push_back(tensor);
    } else {
      ReportTensor(t);
    }
  }
  OpenWindows();
}

void TransferRun::ReportUnreported(size_t count, uint64_t mark) {
  const auto end = unreported_.begin() + static_cast<ptrdiff_t>(count);
  for (auto tensor = unreported_.begin(); tensor != end; ++tensor) {
    ReportTensor(static_cast<size_t>(*tensor), mark);
  }
  unreported_.erase(unreported_.begin(), end);
  marked_ = 0;
  OpenWindows();
}

void TransferRun::ReportTensor(size_t tensor, uint64_t mark) {
  over_[tensor] = true;
  // Its memory may be another tensor's from here on.
  if (late_[tensor]) dst_[tensor] = BoundView();
  Report(Event::Kind::kTensorDone, static_cast<int>(tensor), absl::OkStatus(), mark);
}

void TransferRun::Freeze() {
  frozen_ = true;
  open_end_ = next_bucket_;
}

void TransferRun::CutAt(const BucketId& last) {
  const std::vector<Bucket>& buckets = transfer_.plan().buckets;
  const BucketId planned = last.WithRun(0);
  const auto end =
      std::upper_bound(buckets.begin(), buckets.end(), planned,
                       [](const BucketId& id, const Bucket& bucket) { return id < bucket.id; });
  cut_ = true;
  frozen_ = false;
  end_ = static_cast<size_t>(end - buckets.begin());
  if (last == BucketId()) end_ = 0;
  next_bucket_ = std::min(next_bucket_, end_);
  open_end_ =
      next_window_ == 0 ? 0 : std::min(end_, transfer_.windows()[next_window_ - 1].end_bucket);
  OpenWindows();
}

void TransferRun::Fail(const absl::Status& status) { Report(Event::Kind::kFailed, -1, status); }

void TransferRun::Report(Event::Kind kind, int tensor, absl::Status status, uint64_t mark) {
  if (reports_) events_->push_back({{kind, Run(), tensor, std::move(status)}, id_, mark});
}

}  // namespace sluice
