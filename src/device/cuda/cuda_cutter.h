// Cuts copies, reductions and normalizations into the pieces that kernels work on.
#ifndef SLUICE_SRC_DEVICE_CUDA_CUDA_CUTTER_H_
#define SLUICE_SRC_DEVICE_CUDA_CUDA_CUTTER_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "device/copy_region.h"
#include "device/cuda/cuda_pieces.h"
#include "device/normalization.h"
#include "device/reduction.h"
#include "device/strided_copy.h"
#include "sluice/tensor.h"
#include "tensor/stretch.h"

namespace sluice {

// One dimension of a grid.
struct CudaAxis {
  int64_t count = 1;
  int64_t src_stride = 0;  // bytes
  int64_t dst_stride = 0;
};

// Goes through the positions of one axis of a region, by groups of runs at equal distances.
class RunGroups {
 public:
  struct Group {
    int64_t src = 0;  // byte offset of the first position
    int64_t dst = 0;
    CudaAxis inner;  // positions of a run
    CudaAxis outer;  // runs
  };

  RunGroups() = default;
  // Positions [begin, end).
  RunGroups(const RegionAxis& axis, int64_t begin, int64_t end);

  bool Next(Group* group);

 private:
  void TakeRun(Group* group);

  const RegionAxis* axis_ = nullptr;
  size_t run_ = 0;
  int64_t offset_ = 0;  // positions of the run that are done
  int64_t left_ = 0;
};

// A part of contiguous elements.
struct CudaStretch {
  int64_t begin = 0;  // element
  uint32_t units = 0;
  CudaUnit unit = CudaUnit::kElement;
};

// Cuts contiguous elements into full units, as many as can be, and what is before and after them.
class StretchCutter {
 public:
  // Elements have `src_bytes` and `dst_bytes`; a full unit has `full` elements.
  StretchCutter(const std::byte* src, int64_t src_bytes, const std::byte* dst, int64_t dst_bytes,
                int64_t elements, int64_t full);

  // False if there is none any more.
  bool Next(CudaStretch* stretch);

 private:
  int64_t full_;
  bool aligned_;        // single elements are
  int64_t full_begin_;  // elements between these are in full units
  int64_t full_end_;
  int64_t end_;
  int64_t position_ = 0;
};

// Pieces of reductions and normalizations are stretches of them.
StretchCutter CutterOf(const Reduction& reduction);
StretchCutter CutterOf(const Normalization& normalization);
CudaReduction PieceOf(const Reduction& reduction, const CudaStretch& stretch);
CudaNormalization PieceOf(const Normalization& normalization, const CudaStretch& stretch);

// Cuts a copy into pieces, one by one. Together they are all elements of its range, each once.
// Refers to the copy's runs.
class MoveCutter {
 public:
  // Stretches that are consecutive on both sides are cut where their ends are not aligned as the
  // rest is, unless `whole_stretches`.
  MoveCutter(const StridedCopy& copy, bool whole_stretches);
  MoveCutter(const MoveCutter&) = delete;  // has pointers into itself
  MoveCutter& operator=(const MoveCutter&) = delete;

  // False if there is none any more.
  bool Next(CudaMove* piece);

 private:
  static constexpr size_t kMaxLevels = kMaxTensorDims + 1;

  // Equal parts of a region: a grid with a base.
  struct Box {
    const std::byte* src = nullptr;
    std::byte* dst = nullptr;
    int64_t stretch = 1;  // elements that are consecutive on both sides
    size_t axis_count = 0;
    std::array<CudaAxis, 2 * kMaxLevels> axes;  // the innermost first
  };

  bool NextSlab();
  bool NextGroups();
  void MakeBox();
  void PushAxis(const CudaAxis& axis);
  void FormGrid();
  void FormStretch();
  int64_t TakeUnit(CudaMove* piece) const;
  bool NextOuter();

  const CopyRegion region_;
  const DType src_dtype_;
  const DType dst_dtype_;
  const int64_t src_bytes_;  // of one element
  const int64_t dst_bytes_;
  const bool whole_stretches_;
  std::array<RegionAxis, kMaxLevels> levels_;
  size_t level_count_ = 0;
  int64_t position_;  // elements before it are in slabs already
  const int64_t end_;
  // The slab: whole positions of level `top_` under one position of the levels above.
  size_t top_ = 0;
  int64_t slab_begin_ = 0;
  int64_t slab_end_ = 0;
  int64_t slab_src_ = 0;  // bytes
  int64_t slab_dst_ = 0;
  bool in_slab_ = false;
  std::array<RunGroups, kMaxLevels> cursors_;
  std::array<RunGroups::Group, kMaxLevels> groups_;
  // The box, and what it is cut into: some pieces, again for each position of the dimensions that
  // are too many for a piece.
  Box box_;
  std::array<CudaMove, 3> formed_;
  size_t formed_count_ = 0;
  size_t next_formed_ = 0;
  size_t outer_axis_ = 0;  // the first of them
  std::array<int64_t, 2 * kMaxLevels> outer_position_{};
};

}  // namespace sluice

#endif  // SLUICE_SRC_DEVICE_CUDA_CUDA_CUTTER_H_
