// Addresses, strides and dtypes of both ends of a bucket's copies.
#include "session/transfer/bucket_sides.h"

#include <algorithm>
#include <array>
#include <optional>

namespace sluice {
namespace {

// One side of a copy.
struct Side {
  std::byte* base = nullptr;
  std::array<int64_t, kMaxTensorDims> strides{};
  DType dtype = DType::kU8;
  DeviceKind kind = DeviceKind::kCpu;
};

Side MemorySide(const BoundView& view, DType dtype) {
  return {view.base, view.stride_bytes, dtype, view.kind};
}

// A region's elements one after another in a slot, where number `chunk.begin` lies at `at`.
Side WireSide(const TransferRun& run, const RegionRuns& region, const Chunk& chunk,
              const std::byte* at, DType dtype) {
  Side side;
  side.dtype = dtype;
  side.kind = run.transfer().memory.staging;
  int64_t stride = DTypeBytes(dtype);
  if (at != nullptr) side.base = const_cast<std::byte*>(at) - chunk.begin * stride;
  for (size_t d = static_cast<size_t>(region.dims); d-- > 0;) {
    side.strides[d] = stride;
    stride *= region.extent[d];
  }
  return side;
}

StridedCopy CopyOf(const Plan& plan, const RegionRuns& region, const Chunk& chunk, const Side& src,
                   const Side& dst) {
  StridedCopy copy;
  copy.dims = region.dims;
  copy.begin = chunk.begin;
  copy.end = chunk.end;
  for (size_t d = 0; d < static_cast<size_t>(region.dims); ++d) {
    const size_t first = static_cast<size_t>(region.first_run[d]);
    copy.runs[d] = absl::MakeConstSpan(plan.runs).subspan(
        first, static_cast<size_t>(region.first_run[d + 1]) - first);
  }
  copy.src = src.base;
  copy.src_strides = src.strides;
  copy.src_dtype = src.dtype;
  copy.dst = dst.base;
  copy.dst_strides = dst.strides;
  copy.dst_dtype = dst.dtype;
  copy.src_kind = src.kind;
  copy.dst_kind = dst.kind;
  return copy;
}

const RegionRuns& RegionAt(const Plan& plan, int32_t index) {
  return plan.regions[static_cast<size_t>(index)];
}

int32_t DstRegion(const Chunk& chunk) {
  return chunk.dst_region >= 0 ? chunk.dst_region : chunk.region;
}

const BoundView& SrcView(const TransferRun& run, const Chunk& chunk) {
  return run.src()[static_cast<size_t>(chunk.tensor)];
}

const BoundView& DstView(const TransferRun& run, const Chunk& chunk) {
  return run.dst()[static_cast<size_t>(chunk.tensor)];
}

WireMemory AsItLies(const TransferRun& run, const Bucket& bucket, const Chunk& chunk,
                    const RegionSide& region, const Side& memory) {
  const Plan& plan = run.transfer().plan();
  const Channel& channel = plan.channels[static_cast<size_t>(bucket.channel)];
  const std::optional<Rows> rows = RowsAsTheyLie(channel, region, chunk);
  if (!rows) return {};
  if (rows->count > 1 && !run.transfer().memory.takes_rows) return {};
  if (rows->count == 1) return {memory.base + rows->offset, 0, 0, memory.kind};
  return {memory.base + rows->offset, rows->row_bytes, rows->stride_bytes, memory.kind};
}

WireMemory SrcAsItLies(const TransferRun& run, const Bucket& bucket) {
  const Plan& plan = run.transfer().plan();
  const Channel& channel = plan.channels[static_cast<size_t>(bucket.channel)];
  const bool gives = Has(bucket.role, Role::kSource) || channel.own_contribution >= 0;
  if (!gives || bucket.chunk_count != 1) return {};
  const Chunk& chunk = ChunksOf(plan, bucket)[0];
  const TensorTransfer& tensor = TensorAt(run, chunk);
  if (bucket.contribution_bytes == 0 && tensor.src_dtype != WireDType(tensor)) return {};
  const Side memory = MemorySide(SrcView(run, chunk), tensor.src_dtype);
  if (!run.transfer().memory.Takes(memory.kind)) return {};
  // An owner reads it here.
  if (!Has(bucket.role, Role::kOwner) && !run.CanSendSrc(chunk.tensor)) return {};
  const StridedCopy copy = CopyOf(plan, RegionAt(plan, chunk.region), chunk, memory, Side());
  return AsItLies(run, bucket, chunk, SrcSide(copy), memory);
}

// True if an owner can leave the adding to the transport, which then reads the contributions where
// they lie.
bool Folds(const TransferRun& run, const Bucket& bucket) {
  const MemoryRules& memory = run.transfer().memory;
  const Plan& plan = run.transfer().plan();
  const Channel& channel = plan.channels[static_cast<size_t>(bucket.channel)];
  return memory.takes_folds && memory.staging == DeviceKind::kCpu && MayFold(channel, bucket);
}

// The result of an owner that does not fold is made elsewhere.
WireMemory DstAsItLies(const TransferRun& run, const Bucket& bucket, bool folds) {
  if (!Has(bucket.role, Role::kDestination) || bucket.chunk_count != 1) return {};
  const bool owns = OwnsResult(bucket.role);
  if (owns && !folds) return {};
  const Plan& plan = run.transfer().plan();
  const Chunk& chunk = ChunksOf(plan, bucket)[0];
  const TensorTransfer& tensor = TensorAt(run, chunk);
  if (tensor.dst_dtype != (owns ? tensor.src_dtype : WireDType(tensor))) return {};
  const Side memory = MemorySide(DstView(run, chunk), tensor.dst_dtype);
  if (!run.transfer().memory.Takes(memory.kind)) return {};
  // Bytes that come in are sent on from there.
  const bool is_sent_on = plan.channels[static_cast<size_t>(bucket.channel)].child_count > 0;
  if (is_sent_on && !run.CanSendDst(chunk.tensor)) return {};
  const StridedCopy copy = CopyOf(plan, RegionAt(plan, DstRegion(chunk)), chunk, Side(), memory);
  return AsItLies(run, bucket, chunk, DstSide(copy), memory);
}

}  // namespace

absl::Span<const Chunk> ChunksOf(const Plan& plan, const Bucket& bucket) {
  return absl::MakeConstSpan(plan.chunks)
      .subspan(static_cast<size_t>(bucket.first_chunk), static_cast<size_t>(bucket.chunk_count));
}

const TensorTransfer& TensorAt(const TransferRun& run, const Chunk& chunk) {
  return run.transfer().planned().tensors[static_cast<size_t>(chunk.tensor)];
}

namespace {

// True if nothing of the bucket has anywhere to go to.
bool Drops(const TransferRun& run, const Bucket& bucket) {
  if (!run.cut()) return false;
  const absl::Span<const Chunk> chunks = ChunksOf(run.transfer().plan(), bucket);
  return std::all_of(chunks.begin(), chunks.end(),
                     [&run](const Chunk& chunk) { return IsDropped(run, chunk); });
}

}  // namespace

bool IsDropped(const TransferRun& run, const Chunk& chunk) {
  return run.cut() && run.Lacks(chunk.tensor);
}

BucketPart PartOf(const TransferRun& run, const Bucket& bucket) {
  BucketPart part;
  part.drops = Has(bucket.role, Role::kDestination) && Drops(run, bucket);
  if (bucket.role == Role::kLocal) {
    part.stages = kStageDrain;
    return part;
  }
  part.stages = kStageMove;
  part.src = SrcAsItLies(run, bucket);
  part.folds = Folds(run, bucket);
  if (!part.drops) part.dst = DstAsItLies(run, bucket, part.folds);
  if (Has(bucket.role, Role::kOwner)) {
    const Plan& plan = run.transfer().plan();
    const Channel& channel = plan.channels[static_cast<size_t>(bucket.channel)];
    const bool in_place = part.dst.data != nullptr;
    const bool packs = channel.own_contribution >= 0 && part.src.data == nullptr;
    if (Has(bucket.role, Role::kDestination) && !part.drops && !in_place) {
      part.stages |= kStageDrain;
    }
    const bool sum_in_place = in_place && OwnsResult(bucket.role);
    if (!sum_in_place || packs) part.staging_bytes = SlotBytes(plan, bucket);
    return part;
  }
  if (bucket.role != Role::kDestination && part.src.data == nullptr) {
    part.stages |= kStageFill;
    part.staging_bytes =
        std::max(bucket.contribution_bytes, Has(bucket.role, Role::kSource) ? bucket.bytes : 0);
  }
  if (Has(bucket.role, Role::kDestination) && part.dst.data == nullptr) {
    if (!part.drops) part.stages |= kStageDrain;
    part.staging_bytes = std::max(part.staging_bytes, bucket.bytes);
  }
  return part;
}

StridedCopy PackCopy(const TransferRun& run, const Chunk& chunk, std::byte* wire) {
  const Plan& plan = run.transfer().plan();
  const TensorTransfer& tensor = TensorAt(run, chunk);
  const RegionRuns& region = RegionAt(plan, chunk.region);
  const Side from = MemorySide(SrcView(run, chunk), tensor.src_dtype);
  const Side to = WireSide(run, region, chunk, wire + chunk.bucket_offset, WireDType(tensor));
  return CopyOf(plan, region, chunk, from, to);
}

StridedCopy ContributionCopy(const TransferRun& run, const Chunk& chunk, std::byte* wire) {
  const Plan& plan = run.transfer().plan();
  const DType dtype = TensorAt(run, chunk).src_dtype;
  const RegionRuns& region = RegionAt(plan, chunk.region);
  const Side from = MemorySide(SrcView(run, chunk), dtype);
  const Side to = WireSide(run, region, chunk, wire + chunk.contribution_offset, dtype);
  return CopyOf(plan, region, chunk, from, to);
}

StridedCopy UnpackCopy(const TransferRun& run, const Chunk& chunk, const std::byte* wire) {
  const Plan& plan = run.transfer().plan();
  const TensorTransfer& tensor = TensorAt(run, chunk);
  const RegionRuns& region = RegionAt(plan, DstRegion(chunk));
  const Side from = WireSide(run, region, chunk, wire + chunk.bucket_offset, WireDType(tensor));
  const Side to = MemorySide(DstView(run, chunk), tensor.dst_dtype);
  StridedCopy copy = CopyOf(plan, region, chunk, from, to);
  copy.stores = run.transfer().stores();
  return copy;
}

StridedCopy LocalCopy(const TransferRun& run, const Chunk& chunk) {
  const Plan& plan = run.transfer().plan();
  const TensorTransfer& tensor = TensorAt(run, chunk);
  const Side from = MemorySide(SrcView(run, chunk), tensor.src_dtype);
  const Side to = MemorySide(DstView(run, chunk), tensor.dst_dtype);
  StridedCopy copy = CopyOf(plan, RegionAt(plan, chunk.region), chunk, from, to);
  copy.stores = run.transfer().stores();
  return copy;
}

}  // namespace sluice
