// Decides who does what, and keeps the order between the host and the stream.
#include "device/cuda/cuda_issuer.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <variant>

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "device/cuda/cuda_bounce.h"
#include "device/cuda/cuda_cutter.h"
#include "device/cuda/cuda_error.h"
#include "device/cuda/cuda_event.h"
#include "device/cuda/cuda_launcher.h"
#include "device/cuda/cuda_pieces.h"
#include "device/cuda/cuda_pixel_cutter.h"
#include "device/device.h"
#include "device/normalization.h"
#include "device/owned_batch.h"
#include "device/reduction.h"
#include "device/strided_copy.h"
#include "sluice/accelerator.h"
#include "sluice/tensor.h"
#include "tensor/error_text.h"
#include "tensor/stretch.h"

namespace sluice {
namespace {

// From these sizes on, in one stretch or in one row, copy engines are faster than kernels between
// pinned memory and the GPU. They also leave the multiprocessors to others.
constexpr int64_t kCopyEngineStretch = int64_t{64} << 10;
constexpr int64_t kCopyEngineRow = int64_t{16} << 10;
constexpr int64_t kMaxPitch = (int64_t{1} << 31) - 1;

bool Touches(DeviceKind kind, DeviceKind src, DeviceKind dst) { return src == kind || dst == kind; }

// All elements of something contiguous, as a copy.
StridedCopy ContiguousCopy(const std::byte* src, std::byte* dst, DType dtype, const Stretch& all) {
  StridedCopy copy;
  copy.runs[0] = absl::MakeConstSpan(&all, 1);
  copy.src_strides[0] = copy.dst_strides[0] = DTypeBytes(dtype);
  copy.src = src;
  copy.dst = dst;
  copy.src_dtype = copy.dst_dtype = dtype;
  copy.end = all.length;
  return copy;
}

bool HasPixels(const Normalization& normalization) { return normalization.pixels.channels > 0; }

}  // namespace

absl::StatusOr<std::unique_ptr<CudaIssuer>> CudaIssuer::Create(int ordinal, cudaStream_t stream,
                                                               int64_t bounce_bytes) {
  auto issuer = absl::WrapUnique(new CudaIssuer(stream));
  SLUICE_ASSIGN_OR_RETURN(issuer->launcher_, CudaLauncher::Create(ordinal, stream));
  SLUICE_ASSIGN_OR_RETURN(issuer->ring_, BounceRing::Create(ordinal, bounce_bytes));
  SLUICE_ASSIGN_OR_RETURN(issuer->host_may_begin_, UniqueCudaEvent::Create());
  return issuer;
}

absl::Status CudaIssuer::ComeAfter(Fence* fence) {
  host_held_back_ = true;
  stream_is_idle_ = false;
  return fence->HoldBack(StreamHandle{stream_});
}

void CudaIssuer::Begin(const OwnedBatch& batch) {
  batch_ = &batch;
  phase_ = Phase::kCopies;
  small_ = 0;
  item_ = 0;
  item_begun_ = false;
  used_stream_ = false;
  // The stream may have been put behind others.
  stream_is_idle_ = false;
}

size_t CudaIssuer::ItemCount() const {
  switch (phase_) {
    case Phase::kCopies:
      return batch_->copies().size();
    case Phase::kReductions:
      return batch_->reductions().size();
    case Phase::kNormalizations:
      return batch_->normalizations().size();
  }
  return 0;
}

CudaIssuer::Work CudaIssuer::Item() const {
  switch (phase_) {
    case Phase::kCopies:
      return batch_->copies()[item_];
    case Phase::kReductions:
      return batch_->reductions()[item_];
    case Phase::kNormalizations:
      break;
  }
  return batch_->normalizations()[item_];
}

absl::StatusOr<bool> CudaIssuer::AddSmallCopies() {
  const absl::Span<const SmallCopy> copies = batch_->small_copies();
  for (; small_ < copies.size(); ++small_) {
    used_stream_ = true;
    stream_is_idle_ = false;
    const SmallCopy& copy = copies[small_];
    absl::StatusOr<bool> added = launcher_->AddSmall(copy.src, copy.dst, copy.bytes);
    if (!added.ok() || !*added) return added;
  }
  return true;
}

absl::StatusOr<bool> CudaIssuer::Continue() {
  absl::StatusOr<bool> small = AddSmallCopies();
  if (!small.ok() || !*small) return small;
  while (true) {
    if (item_ < ItemCount()) {
      if (!item_begun_) {
        SLUICE_RETURN_IF_ERROR(BeginItem());
      }
      absl::StatusOr<bool> done = ContinueItem();
      if (!done.ok() || !*done) return done;
      item_begun_ = false;
      ++item_;
      continue;
    }
    SLUICE_RETURN_IF_ERROR(launcher_->Flush());
    if (phase_ == Phase::kNormalizations) return true;
    phase_ = phase_ == Phase::kCopies ? Phase::kReductions : Phase::kNormalizations;
    item_ = 0;
  }
}

absl::Status CudaIssuer::BeginItem() {
  work_ = Item();
  item_begun_ = true;
  const auto [src, dst] =
      std::visit([](const auto& work) { return std::pair(work.src_kind, work.dst_kind); }, work_);
  touches_pinned_ = Touches(DeviceKind::kCudaHost, src, dst);
  route_ = !Touches(DeviceKind::kCuda, src, dst) ? Route::kHost
           : src == DeviceKind::kCpu             ? Route::kHostThenGpu
           : dst == DeviceKind::kCpu             ? Route::kGpuThenHost
                                                 : Route::kGpu;
  if (route_ == Route::kHost) return absl::OkStatus();
  if (route_ == Route::kGpu) {
    BeginOnGpu(work_);
    return absl::OkStatus();
  }
  const bool to_gpu = route_ == Route::kHostThenGpu;
  if (const auto* copy = std::get_if<StridedCopy>(&work_)) {
    bounced_.Assign(*copy, to_gpu);
    next_element_ = copy->begin;
    end_element_ = std::max(copy->begin, copy->end);
    return absl::OkStatus();
  }
  next_element_ = 0;
  if (const auto* reduction = std::get_if<Reduction>(&work_)) {
    end_element_ = reduction->elements;
    const Stretch all = {0, 0, end_element_};
    bounced_.Assign(ContiguousCopy(reduction->src, reduction->dst, reduction->dtype, all), to_gpu);
    return absl::OkStatus();
  }
  const auto& normalization = std::get<Normalization>(work_);
  end_element_ = normalization.elements;
  const Stretch all = {0, 0, end_element_};
  // Pixels do not stay side by side: the second half takes them apart, wherever it is done.
  const bool first_copies = to_gpu || HasPixels(normalization);
  const DType dtype = first_copies ? normalization.src_dtype : normalization.dst_dtype;
  bounced_.Assign(ContiguousCopy(normalization.src, normalization.dst, dtype, all), to_gpu);
  return absl::OkStatus();
}

absl::StatusOr<bool> CudaIssuer::ContinueItem() {
  switch (route_) {
    case Route::kHost: {
      absl::StatusOr<bool> may = HostMayBegin(touches_pinned_);
      if (may.ok() && *may) DoOnHost(work_);
      return may;
    }
    case Route::kGpu:
      return ContinueOnGpu();
    case Route::kHostThenGpu:
    case Route::kGpuThenHost:
      break;
  }
  return ContinueBounce();
}

absl::StatusOr<bool> CudaIssuer::ContinueBounce() {
  while (true) {
    SLUICE_RETURN_IF_ERROR(TakeArrived());
    if (on_gpu_) {
      absl::StatusOr<bool> added = ContinueOnGpu();
      if (!added.ok() || !*added) return added;
      SLUICE_RETURN_IF_ERROR(launcher_->Flush());
      SLUICE_RETURN_IF_ERROR(route_ == Route::kHostThenGpu ? ring_->Sent(stream_)
                                                           : ring_->Awaited(stream_));
    }
    if (next_element_ == end_element_) return !ring_->awaits();
    if (route_ == Route::kHostThenGpu) {
      absl::StatusOr<bool> may = HostMayBegin(false);
      if (!may.ok() || !*may) return may;
    }
    SLUICE_ASSIGN_OR_RETURN(BounceRing::Slot* const slot, ring_->Free());
    if (slot == nullptr) return false;
    const int64_t begin = next_element_;
    const int64_t fit = ring_->slot_bytes() / bounced_.slot_element_bytes();
    next_element_ = std::min(end_element_, begin + fit);
    slot->begin = begin;
    slot->end = next_element_;
    const Work first = FirstHalf(slot->data, begin, next_element_);
    if (route_ == Route::kHostThenGpu) {
      DoOnHost(first);
      BeginOnGpu(SecondHalf(slot->data, begin, next_element_));
    } else {
      BeginOnGpu(first);
    }
  }
}

// The host's half of what has come from the GPU.
absl::Status CudaIssuer::TakeArrived() {
  while (true) {
    SLUICE_ASSIGN_OR_RETURN(BounceRing::Slot* const slot, ring_->Arrived());
    if (slot == nullptr) return absl::OkStatus();
    DoOnHost(SecondHalf(slot->data, slot->begin, slot->end));
    ring_->Taken();
  }
}

CudaIssuer::Work CudaIssuer::FirstHalf(std::byte* slot, int64_t begin, int64_t end) const {
  const auto* const whole = std::get_if<Normalization>(&work_);
  if (whole == nullptr || route_ == Route::kHostThenGpu || HasPixels(*whole)) {
    return bounced_.FirstHalf(slot, begin, end);
  }
  Normalization half = *whole;
  half.src += begin * DTypeBytes(whole->src_dtype);
  half.dst = slot;
  half.dst_kind = DeviceKind::kCudaHost;
  half.elements = end - begin;
  return half;
}

CudaIssuer::Work CudaIssuer::SecondHalf(std::byte* slot, int64_t begin, int64_t end) const {
  if (const auto* whole = std::get_if<Reduction>(&work_)) {
    Reduction half = *whole;
    half.src = slot;
    half.src_kind = DeviceKind::kCudaHost;
    half.dst += begin * DTypeBytes(whole->dtype);
    half.elements = end - begin;
    return half;
  }
  const auto* const whole = std::get_if<Normalization>(&work_);
  if (whole == nullptr || (route_ == Route::kGpuThenHost && !HasPixels(*whole))) {
    return bounced_.SecondHalf(slot, begin, end);
  }
  Normalization half = *whole;
  half.src = slot;
  half.src_kind = DeviceKind::kCudaHost;
  if (HasPixels(*whole)) {
    half.first += begin;
  } else {
    half.dst += begin * DTypeBytes(whole->dst_dtype);
  }
  half.elements = end - begin;
  return half;
}

// Pinned memory may be what the stream's work reads or writes; other host memory is the host's
// alone, but for what the batch comes after.
absl::StatusOr<bool> CudaIssuer::HostMayBegin(bool touches_pinned) {
  if (stream_is_idle_ || (!touches_pinned && !host_held_back_)) return true;
  if (!waits_for_stream_) {
    SLUICE_RETURN_IF_ERROR(launcher_->Flush());
    SLUICE_RETURN_IF_ERROR(host_may_begin_.Record(stream_));
    waits_for_stream_ = true;
  }
  absl::StatusOr<bool> passed = host_may_begin_.Passed();
  if (!passed.ok() || !*passed) return passed;
  waits_for_stream_ = false;
  host_held_back_ = false;
  stream_is_idle_ = true;
  return true;
}

void CudaIssuer::DoOnHost(const Work& work) {
  if (const auto* copy = std::get_if<StridedCopy>(&work)) return CopyStrided(*copy);
  if (const auto* reduction = std::get_if<Reduction>(&work)) return Reduce(*reduction);
  Normalize(std::get<Normalization>(work));
}

void CudaIssuer::BeginOnGpu(const Work& work) {
  on_gpu_ = true;
  used_stream_ = true;
  stream_is_idle_ = false;
  holds_piece_ = false;
  gpu_work_ = work;
  if (const auto* copy = std::get_if<StridedCopy>(&gpu_work_)) {
    copy_engine_may_ = copy->src_dtype == copy->dst_dtype &&
                       Touches(DeviceKind::kCudaHost, copy->src_kind, copy->dst_kind);
    moves_.emplace(*copy, copy_engine_may_);
  } else if (const auto* reduction = std::get_if<Reduction>(&gpu_work_)) {
    stretches_.emplace(CutterOf(*reduction));
  } else if (const auto& normalization = std::get<Normalization>(gpu_work_);
             HasPixels(normalization)) {
    pixels_.emplace(normalization);
  } else {
    stretches_.emplace(CutterOf(normalization));
  }
}

absl::StatusOr<bool> CudaIssuer::ContinueOnGpu() {
  absl::StatusOr<bool> done;
  if (std::holds_alternative<StridedCopy>(gpu_work_)) {
    done = AddMoves();
  } else if (const auto* reduction = std::get_if<Reduction>(&gpu_work_)) {
    done = AddStretches<Reduction, CudaReduction>(*reduction);
  } else if (const auto& normalization = std::get<Normalization>(gpu_work_);
             HasPixels(normalization)) {
    done = AddPixels();
  } else {
    done = AddStretches<Normalization, CudaNormalization>(normalization);
  }
  if (done.ok() && *done) on_gpu_ = false;
  return done;
}

absl::StatusOr<bool> CudaIssuer::AddMoves() {
  while (holds_piece_ || moves_->Next(&move_)) {
    holds_piece_ = true;
    absl::StatusOr<bool> added = false;
    if (copy_engine_may_) added = AddByCopyEngine(move_);
    if (added.ok() && !*added) {
      CudaTranspose transpose;
      added = MakeTranspose(move_, &transpose) ? launcher_->Add(transpose) : launcher_->Add(move_);
    }
    if (!added.ok() || !*added) return added;
    holds_piece_ = false;
  }
  return true;
}

// False if a kernel does it better.
absl::StatusOr<bool> CudaIssuer::AddByCopyEngine(const CudaMove& piece) {
  constexpr size_t kLast = CudaMove::kAxes - 1;
  const int64_t unit = piece.unit_bytes;
  if (piece.counts[0].divisor != 1 || piece.counts[1].divisor != 1) return false;
  const int64_t row = piece.counts[kLast - 1].divisor * unit;
  const int64_t rows = piece.units * unit / row;
  const int64_t src_pitch = piece.src_strides[kLast];
  const int64_t dst_pitch = piece.dst_strides[kLast];
  if (row == unit) {
    const int64_t bytes = piece.units * unit;
    if (src_pitch != unit || dst_pitch != unit || bytes < kCopyEngineStretch) return false;
    SLUICE_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync, (piece.dst, piece.src, static_cast<size_t>(bytes),
                                                  cudaMemcpyDefault, stream_));
    return true;
  }
  const bool dense_rows =
      piece.src_strides[kLast - 1] == unit && piece.dst_strides[kLast - 1] == unit;
  const bool fits =
      std::min(src_pitch, dst_pitch) >= row && std::max(src_pitch, dst_pitch) <= kMaxPitch;
  if (row < kCopyEngineRow || !dense_rows || !fits) return false;
  SLUICE_CUDA_RETURN_IF_ERROR(
      cudaMemcpy2DAsync,
      (piece.dst, static_cast<size_t>(dst_pitch), piece.src, static_cast<size_t>(src_pitch),
       static_cast<size_t>(row), static_cast<size_t>(rows), cudaMemcpyDefault, stream_));
  return true;
}

template <class OneWork, class Piece>
absl::StatusOr<bool> CudaIssuer::AddStretches(const OneWork& work) {
  while (holds_piece_ || stretches_->Next(&stretch_)) {
    holds_piece_ = true;
    absl::StatusOr<bool> added = launcher_->Add(PieceOf(work, stretch_));
    if (!added.ok() || !*added) return added;
    holds_piece_ = false;
  }
  return true;
}

absl::StatusOr<bool> CudaIssuer::AddPixels() {
  while (holds_piece_ || pixels_->Next(&pixel_piece_)) {
    holds_piece_ = true;
    absl::StatusOr<bool> added = launcher_->Add(pixel_piece_);
    if (!added.ok() || !*added) return added;
    holds_piece_ = false;
  }
  return true;
}

}  // namespace sluice
