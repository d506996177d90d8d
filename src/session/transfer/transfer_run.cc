// Bookkeeping of a run: views, windows, events, and where it ends.
#include "session/transfer/transfer_run.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tensor/error_text.h"

namespace sluice {
namespace {

// So many tensors ahead their views are asked for: those of thousands are in no near cache.
constexpr size_t kAhead = 16;

// True of a view of nothing, too.
bool IsOnDevice(const BoundView& view) {
  return view.base == nullptr || view.kind == DeviceKind::kCuda;
}

// Whether a copy program of the one holds for the other.
bool HasSameForm(const BoundView& a, BoundView b) {
  if ((a.base == nullptr) != (b.base == nullptr)) return false;
  b.base = a.base;
  return a == b;
}

bool CanSend(const MemoryRules& rules, const BoundView& view) {
  return view.base != nullptr && CanSendFrom(rules, view.base, view.kind);
}

}  // namespace

TransferRun::TransferRun(const CompiledTransfer* transfer, std::deque<RunEvent>* events)
    : transfer_(*transfer), events_(events), program_(transfer->plan().buckets.size()) {
  const size_t tensors = transfer->planned().tensors.size();
  src_.resize(tensors);
  dst_.resize(tensors);
  src_bases_.resize(tensors);
  dst_bases_.resize(tensors);
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
  const TensorParts& parts = transfer_.parts();
  parts_left_.resize(parts.tensors());
  for (size_t t = 0; t < parts.tensors(); ++t) {
    parts_left_[t] = static_cast<int32_t>(parts.EndPart(t) - parts.FirstPart(t));
  }
  uses_.Clear();
  uses_known_ = false;
  released_ = frozen_ = cut_ = asked_ = false;
  next_bucket_ = open_end_ = finished_ = next_window_ = 0;
  end_ = transfer_.plan().buckets.size();
}

absl::Status TransferRun::Bind(absl::Span<const TensorView> src, absl::Span<const TensorView> dst,
                               int64_t binding) {
  if (!HasSameRanges()) {
    // Memory has changed where the views lie: they have to be bound anew.
    std::fill(src_.begin(), src_.end(), BoundView());
    std::fill(dst_.begin(), dst_.end(), BoundView());
    binding_ = 0;
  }
  if (binding != 0 && binding == binding_ && !late_destinations_) return absl::OkStatus();
  binding_ = 0;
  absl::Status status = BindViews(src, dst);
  if (status.ok() && !late_destinations_) binding_ = binding;
  return status;
}

absl::Status TransferRun::BindViews(absl::Span<const TensorView> src,
                                    absl::Span<const TensorView> dst) {
  const size_t count = src_.size();
  const TensorParts& parts = transfer_.parts();
  if (src.size() != parts.tensors() || dst.size() != parts.tensors()) {
    return absl::InvalidArgumentError(absl::StrCat("the transfer has ", parts.tensors(),
                                                   " tensors, but ", src.size(), " source and ",
                                                   dst.size(), " destination views are given"));
  }
  for (size_t t = 0; t < parts.tensors(); ++t) {
    const bool late = late_destinations_ && parts.IsNull(t, dst[t]);
    for (size_t part = parts.FirstPart(t); part < parts.EndPart(t); ++part) {
      late_[part] = late && parts.Holds(part, /*is_dst=*/true);
    }
  }
  if (!late_destinations_ && AreBound(src, false) && AreBound(dst, true)) return absl::OkStatus();
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
    const auto tensor = static_cast<size_t>(parts.TensorOf(i % count));
    if (!status.ok()) return Explain(status, i >= count, tensor);
  }
  const absl::Span<const BoundView> bound = candidate_;
  SLUICE_RETURN_IF_ERROR(CheckAliasing(bound.subspan(0, count), bound.subspan(count),
                                       transfer_.names(), parts.tensors_of_parts()));
  if (!std::equal(candidate_.begin(), middle, src_.begin(), HasSameForm) ||
      !std::equal(middle, candidate_.end(), dst_.begin(), HasSameForm)) {
    program_.Clear();
  }
  std::copy(candidate_.begin(), middle, src_.begin());
  std::copy(middle, candidate_.end(), dst_.begin());
  for (size_t part = 0; part < count; ++part) {
    src_bases_[part] = src_[part].base;
    dst_bases_[part] = dst_[part].base;
  }
  for (size_t t = 0; t < count; ++t) {
    src_can_be_sent_[t] = transfer_.SendsSrc(t) && CanSend(transfer_.memory, src_[t]);
    dst_can_be_sent_[t] = transfer_.SendsDst(t) && CanSend(transfer_.memory, dst_[t]);
  }
  FindRanges();
  return absl::OkStatus();
}

bool TransferRun::HasSameRanges() const {
  return std::all_of(ranges_.begin(), ranges_.end(), [this](const auto& range) {
    const absl::StatusOr<MemoryRange> found = transfer_.memory.accelerator->FindMemory(range.first);
    return found.ok() && *found == range.second;
  });
}

void TransferRun::FindRanges() {
  ranges_.clear();
  for (const BoundView& view : candidate_) {
    if (view.base == nullptr || view.kind != DeviceKind::kCuda) continue;
    const auto next = ranges_.upper_bound(view.base);
    if (next != ranges_.begin()) {
      const MemoryRange& before = std::prev(next)->second;
      if (view.base < before.begin + before.bytes) continue;
    }
    // Memory that the runtime does not tell apart is checked when views change.
    const absl::StatusOr<MemoryRange> found = transfer_.memory.accelerator->FindMemory(view.base);
    if (found.ok()) ranges_.emplace(found->begin, *found);
  }
}

bool TransferRun::AreBound(absl::Span<const TensorView> views, bool is_dst) const {
  const TensorParts& parts = transfer_.parts();
  const absl::Span<const BoundView> bound = is_dst ? dst_ : src_;
  const absl::Span<const int> held = parts.HeldTensors(is_dst);
  for (size_t i = 0; i < held.size(); ++i) {
    if (i + kAhead < held.size()) {
      const auto next = static_cast<size_t>(held[i + kAhead]);
      __builtin_prefetch(&views[next]);
      __builtin_prefetch(&bound[parts.FirstPart(next)]);
      __builtin_prefetch(&bound[parts.FirstPart(next)].stride_bytes);
      const auto soon = static_cast<size_t>(held[i + kAhead / 2]);
      __builtin_prefetch(views[soon].shape.data());
    }
    const auto t = static_cast<size_t>(held[i]);
    const size_t first = parts.FirstPart(t);
    const absl::Span<const BoundView> of_tensor = bound.subspan(first, parts.EndPart(t) - first);
    if (!parts.IsBound(t, is_dst, views[t], transfer_.memory, of_tensor)) return false;
  }
  return true;
}

absl::Status TransferRun::BindSide(absl::Span<const TensorView> views, bool is_dst) {
  const TensorParts& parts = transfer_.parts();
  const absl::Span<BoundView> bound =
      absl::MakeSpan(candidate_).subspan(is_dst ? src_.size() : 0, src_.size());
  for (size_t t = 0; t < views.size(); ++t) {
    const size_t first = parts.FirstPart(t);
    const size_t count = parts.EndPart(t) - first;
    const auto late = late_.begin() + static_cast<ptrdiff_t>(first);
    if (is_dst && std::find(late, late + static_cast<ptrdiff_t>(count), true) !=
                      late + static_cast<ptrdiff_t>(count)) {
      std::fill_n(bound.begin() + first, count, BoundView());
      continue;
    }
    absl::Status status =
        parts.Bind(t, is_dst, views[t], transfer_.memory, bound.subspan(first, count));
    if (!status.ok()) return Explain(status, is_dst, t);
  }
  return absl::OkStatus();
}

absl::Status TransferRun::Explain(const absl::Status& status, bool is_dst, size_t tensor) const {
  return MakeError(status.code(), is_dst ? "destination" : "source", " of ",
                   TensorInWords(tensor, transfer_.spec().tensors[tensor].name), ": ", status);
}

absl::Status TransferRun::CheckSupply(int tensor) const {
  const TensorParts& parts = transfer_.parts();
  const auto count = static_cast<int>(parts.tensors());
  if (tensor < 0 || tensor >= count) {
    return absl::InvalidArgumentError(
        absl::StrCat("run ", id_, " has no tensor ", tensor, ", only 0 .. ", count - 1));
  }
  const auto t = static_cast<size_t>(tensor);
  if (cut_) return absl::FailedPreconditionError(absl::StrCat("run ", id_, " is cancelled"));
  bool late = false;
  for (size_t part = parts.FirstPart(t); part < parts.EndPart(t); ++part) {
    if (Lacks(static_cast<int>(part))) return absl::OkStatus();
    late = late || late_[part];
  }
  return MakeError(absl::StatusCode::kFailedPrecondition,
                   TensorInWords(t, transfer_.spec().tensors[t].name), " of run ", id_,
                   late ? " has had its memory" : " waits for no memory on this rank");
}

absl::Status TransferRun::Supply(int tensor, const TensorView& dst) {
  if (absl::Status status = CheckSupply(tensor); !status.ok()) return status;
  const TensorParts& parts = transfer_.parts();
  const auto t = static_cast<size_t>(tensor);
  const size_t first = parts.FirstPart(t);
  const absl::Span<BoundView> bound =
      absl::MakeSpan(candidate_).subspan(src_.size() + first, parts.EndPart(t) - first);
  absl::Status status = parts.Bind(t, true, dst, transfer_.memory, bound);
  for (const BoundView& view : bound) {
    if (status.ok() && view.base != nullptr) {
      status = CheckMemory(transfer_.memory, view.base, view.kind);
    }
  }
  if (!status.ok()) return Explain(status, true, t);
  if (status = TakeSupplied(t); !status.ok()) {
    // Parts that have been taken are forgotten: their memory is free.
    for (size_t part = first; part < parts.EndPart(t); ++part) SetDst(part, BoundView());
    return status;
  }
  for (size_t part = first; part < parts.EndPart(t); ++part) {
    dst_can_be_sent_[part] = transfer_.SendsDst(part) && CanSend(transfer_.memory, dst_[part]);
  }
  OpenWindows();
  return absl::OkStatus();
}

// The views are in candidate_.
absl::Status TransferRun::TakeSupplied(size_t tensor) {
  const TensorParts& parts = transfer_.parts();
  bool on_device = true;
  for (size_t part = parts.FirstPart(tensor); part < parts.EndPart(tensor); ++part) {
    const BoundView& view = candidate_[src_.size() + part];
    if (absl::Status status = CheckShared(part, view); !status.ok()) return status;
    uses_.Add({part, true}, view);
    SetDst(part, view);
    on_device = on_device && IsOnDevice(view);
  }
  const absl::Status status =
      stream_.Mark(transfer_.windows_of_tensors()[parts.FirstPart(tensor)], on_device);
  return status.ok() ? status : Explain(status, true, tensor);
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
        if (!use.is_dst) return &src_[use.tensor];
        return dst_[use.tensor].base == nullptr ? nullptr : &dst_[use.tensor];
      });
  if (other) {
    return SharedMemoryError(*other, {tensor, true}, transfer_.names(),
                             transfer_.parts().tensors_of_parts());
  }
  return absl::OkStatus();
}

bool TransferRun::OnDeviceOnly() const {
  return std::all_of(src_.begin(), src_.end(), IsOnDevice) &&
         std::all_of(dst_.begin(), dst_.end(), IsOnDevice);
}

// The first mark holds for all windows: they follow one another in the session's stream.
absl::Status TransferRun::BeginInStream(Device* device, const RunStream::Ways& ways) {
  stream_.Begin(device, ways, transfer_.windows().size());
  return stream_.Mark(0, OnDeviceOnly());
}

absl::StatusOr<bool> TransferRun::AdvanceInStream(CopyQueue* copies) {
  absl::StatusOr<bool> awaited = stream_.AwaitMarks(copies);
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
  absl::StatusOr<bool> ended = stream_.End(copies);
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
  if (!late_destinations_) return true;
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
  int told = -1;  // parts of one of the caller's tensors are neighbours
  for (int tensor : window.tensors) {
    const int of = transfer_.parts().TensorOf(static_cast<size_t>(tensor));
    if (!Lacks(tensor) || std::exchange(told, of) == of) continue;
    Report(Event::Kind::kNeedsMemory, of, absl::OkStatus());
  }
  return false;
}

int TransferRun::tensor_without_memory() const {
  if (!asked_) return -1;
  for (int tensor : transfer_.windows()[next_window_].tensors) {
    if (Lacks(tensor)) return transfer_.parts().TensorOf(static_cast<size_t>(tensor));
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
  if (late_[tensor]) SetDst(tensor, BoundView());
  const int of = transfer_.parts().TensorOf(tensor);
  if (--parts_left_[static_cast<size_t>(of)] > 0) return;
  Report(Event::Kind::kTensorDone, of, absl::OkStatus(), mark);
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
