// Walks regions by groups of equal runs, and makes grids of units of them.
#include "device/cuda/cuda_cutter.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "device/copy_region.h"
#include "device/cuda/cuda_elements.h"
#include "device/cuda/cuda_pieces.h"
#include "device/normalization.h"
#include "device/reduction.h"
#include "device/strided_copy.h"
#include "sluice/tensor.h"
#include "tensor/stretch.h"

namespace sluice {
namespace {

// So many elements are cut at a time that every piece has fewer units than kMaxPieceUnits.
constexpr int64_t kMaxSlabElements = kMaxPieceUnits / 8;

uint64_t AddressBits(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }

bool IsMultiple(const void* address, int64_t bytes) {
  return AddressBits(address) % static_cast<uint64_t>(bytes) == 0;
}

// The largest power of two, of at most kWidestAccess, that divides what the bits were or-ed from.
uint8_t WidestAccess(uint64_t bits) {
  bits |= kWidestAccess;
  return static_cast<uint8_t>(bits & (~bits + 1));
}

}  // namespace

RunGroups::RunGroups(const RegionAxis& axis, int64_t begin, int64_t end)
    : axis_(&axis), offset_(begin), left_(end - begin) {
  for (; run_ < axis.runs.size(); ++run_) {
    const int64_t length = axis.runs[run_].length * axis.scale;
    if (offset_ < length) break;
    offset_ -= length;
  }
}

bool RunGroups::Next(Group* group) {
  if (left_ == 0) return false;
  *group = Group();
  if (!axis_->runs.empty()) {
    TakeRun(group);
    return true;
  }
  group->src = offset_ * axis_->src_stride;
  group->dst = offset_ * axis_->dst_stride;
  group->inner = {left_, axis_->src_stride, axis_->dst_stride};
  left_ = 0;
  return true;
}

// The run, or what is left of it, and the runs after it while they are equal and equally far apart.
void RunGroups::TakeRun(Group* group) {
  const int64_t src_stride = axis_->src_stride;
  const int64_t dst_stride = axis_->dst_stride;
  const int64_t scale = axis_->scale;
  const Stretch first = axis_->runs[run_];
  const int64_t length = std::min(first.length * scale - offset_, left_);
  group->src = (first.src * scale + offset_) * src_stride;
  group->dst = (first.dst * scale + offset_) * dst_stride;
  group->inner = {length, src_stride, dst_stride};
  left_ -= length;
  const bool whole = length == first.length * scale;
  offset_ += length;
  if (offset_ < first.length * scale) return;
  offset_ = 0;
  ++run_;
  if (!whole || run_ == axis_->runs.size()) return;
  const int64_t src_step = axis_->runs[run_].src - first.src;
  const int64_t dst_step = axis_->runs[run_].dst - first.dst;
  int64_t count = 1;
  for (; run_ < axis_->runs.size() && left_ >= length; ++run_, ++count, left_ -= length) {
    const Stretch& run = axis_->runs[run_];
    if (run.length != first.length || run.src != first.src + count * src_step ||
        run.dst != first.dst + count * dst_step) {
      break;
    }
  }
  group->outer = {count, src_step * scale * src_stride, dst_step * scale * dst_stride};
}

StretchCutter::StretchCutter(const std::byte* src, int64_t src_bytes, const std::byte* dst,
                             int64_t dst_bytes, int64_t elements, int64_t full)
    : full_(full),
      aligned_(IsMultiple(src, src_bytes) && IsMultiple(dst, dst_bytes)),
      full_begin_(elements),
      full_end_(elements),
      end_(elements) {
  for (int64_t begin = 0; begin < std::min(full, elements); ++begin) {
    if (IsMultiple(src + begin * src_bytes, full * src_bytes) &&
        IsMultiple(dst + begin * dst_bytes, full * dst_bytes)) {
      full_begin_ = begin;
      full_end_ = begin + (elements - begin) / full * full;
      return;
    }
  }
}

bool StretchCutter::Next(CudaStretch* stretch) {
  if (position_ == end_) return false;
  const bool full = position_ >= full_begin_ && position_ < full_end_;
  const int64_t unit = full ? full_ : 1;
  const int64_t until = full ? full_end_ : position_ < full_begin_ ? full_begin_ : end_;
  const int64_t units = std::min((until - position_) / unit, kMaxPieceUnits);
  *stretch = {position_, static_cast<uint32_t>(units),
              full       ? CudaUnit::kFull
              : aligned_ ? CudaUnit::kElement
                         : CudaUnit::kUnaligned};
  position_ += units * unit;
  return true;
}

StretchCutter CutterOf(const Reduction& reduction) {
  const int64_t bytes = DTypeBytes(reduction.dtype);
  return StretchCutter(reduction.src, bytes, reduction.dst, bytes, reduction.elements,
                       FullUnit(static_cast<size_t>(bytes), 1));
}

StretchCutter CutterOf(const Normalization& normalization) {
  const int64_t src_bytes = DTypeBytes(normalization.src_dtype);
  const int64_t dst_bytes = DTypeBytes(normalization.dst_dtype);
  return StretchCutter(normalization.src, src_bytes, normalization.dst, dst_bytes,
                       normalization.elements,
                       FullUnit(static_cast<size_t>(src_bytes), static_cast<size_t>(dst_bytes)));
}

CudaReduction PieceOf(const Reduction& reduction, const CudaStretch& stretch) {
  const int64_t offset = stretch.begin * DTypeBytes(reduction.dtype);
  CudaReduction piece;
  piece.src = reduction.src + offset;
  piece.dst = reduction.dst + offset;
  piece.divisor = reduction.divisor;
  piece.units = stretch.units;
  piece.op = reduction.op;
  piece.dtype = reduction.dtype;
  piece.unit = stretch.unit;
  return piece;
}

CudaNormalization PieceOf(const Normalization& normalization, const CudaStretch& stretch) {
  CudaNormalization piece;
  piece.src = normalization.src + stretch.begin * DTypeBytes(normalization.src_dtype);
  piece.dst = normalization.dst + stretch.begin * DTypeBytes(normalization.dst_dtype);
  piece.scale = normalization.scale;
  piece.bias = normalization.bias;
  piece.units = stretch.units;
  piece.src_dtype = normalization.src_dtype;
  piece.dst_dtype = normalization.dst_dtype;
  piece.unit = stretch.unit;
  return piece;
}

MoveCutter::MoveCutter(const StridedCopy& copy, bool whole_stretches)
    : region_(copy),
      src_dtype_(copy.src_dtype),
      dst_dtype_(copy.dst_dtype),
      src_bytes_(DTypeBytes(copy.src_dtype)),
      dst_bytes_(DTypeBytes(copy.dst_dtype)),
      whole_stretches_(whole_stretches),
      level_count_(region_.axis_count + 1),
      position_(copy.begin),
      end_(std::max(copy.begin, copy.end)) {
  std::copy_n(region_.axes.begin(), region_.axis_count, levels_.begin());
  RegionAxis& elements = levels_[region_.axis_count];
  elements.extent = region_.piece_elements;
  elements.src_stride = src_bytes_;
  elements.dst_stride = dst_bytes_;
}

bool MoveCutter::Next(CudaMove* piece) {
  while (next_formed_ == formed_count_) {
    if (NextOuter()) {
      next_formed_ = 0;
    } else if (in_slab_ && NextGroups()) {
      MakeBox();
    } else if (!NextSlab()) {
      return false;
    }
  }
  *piece = formed_[next_formed_++];
  for (size_t axis = outer_axis_; axis < box_.axis_count; ++axis) {
    piece->src += outer_position_[axis] * box_.axes[axis].src_stride;
    piece->dst += outer_position_[axis] * box_.axes[axis].dst_stride;
  }
  return true;
}

// As many elements as can be had from here on as whole positions of one level, the outermost.
bool MoveCutter::NextSlab() {
  if (position_ == end_) return false;
  const int64_t left = std::min(end_ - position_, kMaxSlabElements);
  slab_src_ = slab_dst_ = 0;
  int64_t rest = position_;  // under the level
  for (top_ = 0;; ++top_) {
    const RegionAxis& axis = levels_[top_];
    const int64_t position = rest / axis.inner_elements;
    rest %= axis.inner_elements;
    if (rest == 0 && left >= axis.inner_elements) {
      slab_begin_ = position;
      slab_end_ = std::min(axis.extent, position + left / axis.inner_elements);
      position_ += (slab_end_ - slab_begin_) * axis.inner_elements;
      break;
    }
    RunGroups::Group one;
    RunGroups(axis, position, position + 1).Next(&one);
    slab_src_ += one.src;
    slab_dst_ += one.dst;
  }
  for (size_t level = top_; level < level_count_; ++level) {
    const bool is_top = level == top_;
    cursors_[level] = RunGroups(levels_[level], is_top ? slab_begin_ : 0,
                                is_top ? slab_end_ : levels_[level].extent);
    // The first group of the last level comes with the box.
    if (level + 1 < level_count_) cursors_[level].Next(&groups_[level]);
  }
  in_slab_ = true;
  return true;
}

// The next combination of groups of the levels from top_ on, the last level's varying fastest.
bool MoveCutter::NextGroups() {
  size_t level = level_count_ - 1;
  while (!cursors_[level].Next(&groups_[level])) {
    if (level == top_) {
      in_slab_ = false;
      return false;
    }
    --level;
  }
  for (++level; level < level_count_; ++level) {
    cursors_[level] = RunGroups(levels_[level], 0, levels_[level].extent);
    cursors_[level].Next(&groups_[level]);
  }
  return true;
}

void MoveCutter::MakeBox() {
  box_.src = region_.src + slab_src_;
  box_.dst = region_.dst + slab_dst_;
  box_.stretch = 1;
  box_.axis_count = 0;
  for (size_t level = level_count_; level-- > top_;) {
    const RunGroups::Group& group = groups_[level];
    box_.src += group.src;
    box_.dst += group.dst;
    PushAxis(group.inner);
    PushAxis(group.outer);
  }
  formed_count_ = next_formed_ = 0;
  outer_axis_ = box_.axis_count;
  if (box_.axis_count == 0) return FormStretch();
  FormGrid();
}

// Joins it with the one inside it where they are one.
void MoveCutter::PushAxis(const CudaAxis& axis) {
  if (axis.count == 1) return;
  if (box_.axis_count == 0) {
    if (axis.src_stride == box_.stretch * src_bytes_ &&
        axis.dst_stride == box_.stretch * dst_bytes_) {
      box_.stretch *= axis.count;
      return;
    }
  } else {
    CudaAxis& inside = box_.axes[box_.axis_count - 1];
    if (axis.src_stride == inside.count * inside.src_stride &&
        axis.dst_stride == inside.count * inside.dst_stride) {
      inside.count *= axis.count;
      return;
    }
  }
  box_.axes[box_.axis_count++] = axis;
}

void MoveCutter::FormStretch() {
  CudaMove piece;
  piece.src_dtype = src_dtype_;
  piece.dst_dtype = dst_dtype_;
  const bool casts = src_dtype_ != dst_dtype_;
  // Bytes are the elements of what is only moved.
  const int64_t src_bytes = casts ? src_bytes_ : 1;
  const int64_t dst_bytes = casts ? dst_bytes_ : 1;
  const int64_t elements = casts ? box_.stretch : box_.stretch * src_bytes_;
  int64_t full = FullUnit(static_cast<size_t>(src_bytes), static_cast<size_t>(dst_bytes));
  if (!casts) {
    uint64_t bits = AddressBits(box_.src) - AddressBits(box_.dst);
    if (whole_stretches_) bits = AddressBits(box_.src) | AddressBits(box_.dst);
    if (whole_stretches_) bits |= static_cast<uint64_t>(elements);
    full = WidestAccess(bits);
  }
  StretchCutter cutter(box_.src, src_bytes, box_.dst, dst_bytes, elements, full);
  CudaStretch stretch;
  while (cutter.Next(&stretch)) {
    const int64_t unit = stretch.unit == CudaUnit::kFull ? full : 1;
    piece.src = box_.src + stretch.begin * src_bytes;
    piece.dst = box_.dst + stretch.begin * dst_bytes;
    piece.units = stretch.units;
    piece.unit = stretch.unit;
    piece.unit_bytes = static_cast<uint8_t>(casts ? 1 : unit);
    piece.src_strides[CudaMove::kAxes - 1] = unit * src_bytes;
    piece.dst_strides[CudaMove::kAxes - 1] = unit * dst_bytes;
    formed_[formed_count_++] = piece;
  }
}

// Chooses the piece's unit; returns how many units a stretch has.
int64_t MoveCutter::TakeUnit(CudaMove* piece) const {
  uint64_t src_bits = AddressBits(box_.src);
  uint64_t dst_bits = AddressBits(box_.dst);
  for (size_t axis = 0; axis < box_.axis_count; ++axis) {
    src_bits |= static_cast<uint64_t>(box_.axes[axis].src_stride);
    dst_bits |= static_cast<uint64_t>(box_.axes[axis].dst_stride);
  }
  const auto bytes = static_cast<uint64_t>(box_.stretch * src_bytes_);
  if (src_dtype_ == dst_dtype_) {
    piece->unit_bytes = WidestAccess(src_bits | dst_bits | bytes);
    return static_cast<int64_t>(bytes) / piece->unit_bytes;
  }
  const auto aligned = [&](int64_t elements) {
    return src_bits % static_cast<uint64_t>(elements * src_bytes_) == 0 &&
           dst_bits % static_cast<uint64_t>(elements * dst_bytes_) == 0;
  };
  const int64_t full = FullUnit(static_cast<size_t>(src_bytes_), static_cast<size_t>(dst_bytes_));
  if (box_.stretch % full == 0 && aligned(full)) {
    piece->unit = CudaUnit::kFull;
    return box_.stretch / full;
  }
  piece->unit = aligned(1) ? CudaUnit::kElement : CudaUnit::kUnaligned;
  return box_.stretch;
}

void MoveCutter::FormGrid() {
  CudaMove piece;
  piece.src = box_.src;
  piece.dst = box_.dst;
  piece.src_dtype = src_dtype_;
  piece.dst_dtype = dst_dtype_;
  const int64_t stretch_units = TakeUnit(&piece);
  std::array<CudaAxis, CudaMove::kAxes> axes;
  size_t count = 0;
  if (stretch_units > 1) {
    axes[count++] = {stretch_units, box_.stretch * src_bytes_ / stretch_units,
                     box_.stretch * dst_bytes_ / stretch_units};
  }
  outer_axis_ = std::min(box_.axis_count, axes.size() - count);
  std::copy_n(box_.axes.begin(), outer_axis_, axes.begin() + static_cast<ptrdiff_t>(count));
  count += outer_axis_;
  // The last axes of the piece: those before them have one position.
  int64_t units = 1;
  const size_t unused = axes.size() - count;
  for (size_t i = 0; i < count; ++i) {
    const size_t at = unused + i;
    piece.src_strides[at] = axes[i].src_stride;
    piece.dst_strides[at] = axes[i].dst_stride;
    if (i + 1 < count) piece.counts[at] = FastDivisor(static_cast<uint32_t>(axes[i].count));
    units *= axes[i].count;
  }
  piece.units = static_cast<uint32_t>(units);
  formed_[formed_count_++] = piece;
  std::fill(outer_position_.begin(), outer_position_.end(), 0);
}

// The next position of the dimensions that did not fit into the piece.
bool MoveCutter::NextOuter() {
  for (size_t axis = outer_axis_; axis < box_.axis_count; ++axis) {
    if (++outer_position_[axis] < box_.axes[axis].count) return true;
    outer_position_[axis] = 0;
  }
  outer_axis_ = box_.axis_count;  // done with this box
  return false;
}

}  // namespace sluice
