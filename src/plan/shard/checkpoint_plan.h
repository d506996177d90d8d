// Cuts the tensors of a checkpoint into pieces, and says who takes part in each piece.
//
// A piece is a box of a row-major tensor that is one range of bytes in its file. Its indices are
// fixed in the dimensions before the cut one, and a range in the cut one. It has all of the
// dimensions behind the cut one. One rank reads or writes the piece: the file rank. All is
// arithmetic on what every rank knows. The cost follows a rank's own pieces.
#ifndef SLUICE_SRC_PLAN_SHARD_CHECKPOINT_PLAN_H_
#define SLUICE_SRC_PLAN_SHARD_CHECKPOINT_PLAN_H_

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "plan/bucket.h"
#include "sluice/layout.h"
#include "sluice/tensor.h"
#include "tensor/stretch.h"

namespace sluice {

struct CheckpointPlanTensor {
  std::vector<int64_t> shape;
  int64_t element_bytes = 1;  // in the file
  // Valid for `shape`, without Partial placements. Boxes of all ranks. They cover a tensor that is
  // saved, and are few enough (checkpoint_cells.h).
  Layout layout;
};

enum class CheckpointFlow : uint8_t {
  kLoad,  // from the file rank to all ranks whose regions meet the box
  kSave,  // to the file rank, from one of the ranks of each region that meets the box
};

struct CheckpointPiece {
  int tensor = 0;
  int64_t box = 0;     // in the tensor
  int64_t number = 0;  // among the boxes of all tensors
  int64_t offset = 0;  // bytes, in the tensor
  int64_t bytes = 0;
  int file_rank = 0;
  bool alone = false;  // the file rank is the only member
};

// One region's part of a box: a product of index lists.
struct CheckpointPart {
  std::vector<int> ranks;  // that take part with this region; the same for all of them
  int first_dim = 0;       // dimensions of the tensor before this one are fixed
  int dims = 1;            // from first_dim on; the arrays below begin with it
  // Stretches along each dimension, between the positions in the box and in the part: from the box
  // in kLoad, to it in kSave. Valid as long as the CheckpointParts and the plan.
  std::array<absl::Span<const Stretch>, kMaxTensorDims> runs;
  std::array<int64_t, kMaxTensorDims> extent{};    // of the part, elements
  std::array<int64_t, kMaxTensorDims> box_size{};  // of the box, elements
  int64_t elements = 0;

  // The part's begin in a local tensor of its region: positions along all dimensions of the tensor.
  // From there on it is whole: `extent` positions along each dimension.
  std::array<int64_t, kMaxTensorDims> local_begin{};
  int view = 0;  // of this rank's boxes, the one that the local tensor is
};

struct CheckpointParts {
  std::vector<CheckpointPart> parts;
  std::vector<Stretch> runs;  // of parts of tensors that lie in boxes
};

class CheckpointPieces;

class CheckpointPlan {
 public:
  // `tensors` in the order of their bytes in the files. No box has more than `piece_bytes`, or one
  // element.
  CheckpointPlan(const std::vector<CheckpointPlanTensor>& tensors, int64_t piece_bytes,
                 CheckpointFlow flow, int rank);
  ~CheckpointPlan();

  // The next piece of this rank, in the order of boxes. False: there is none.
  bool NextPiece(CheckpointPiece* piece);
  bool over() const { return tensor_ == tensors_.size(); }

  // This rank's part; or its parts, where it has boxes. Between two ranks they cross in this order.
  void OwnPart(const CheckpointPiece& piece, CheckpointParts* own) const;
  // All members' parts but the file rank's own, in an order that depends on the piece alone.
  // Replicas share a part. kLoad: the file rank's replicas are in the list.
  void OtherParts(const CheckpointPiece& piece, CheckpointParts* others) const;

  // Ascends with the number.
  static BucketId IdOf(const CheckpointPiece& piece);

  CheckpointFlow flow() const { return flow_; }
  int64_t boxes() const { return boxes_; }
  // The largest box.
  int64_t box_bytes_max() const { return box_bytes_max_; }
  // The largest box whose parts need a second area of the same size, as they are no rows of the box
  // or short ones.
  int64_t packed_bytes_max() const { return packed_bytes_max_; }
  // The most messages that a file rank has for one piece.
  int messages_max() const { return messages_max_; }

  // Rows in a box that are shorter than this are packed.
  static constexpr int64_t kRowBytesMin = 256;
  static constexpr int64_t kBoxesMax = int64_t{1} << (kWindowBits + kRoundBits);

 private:
  struct Tensor {
    const CheckpointPieces* of = nullptr;
    int64_t first_box = 0;  // of all boxes
    int64_t turn = 0;       // of the first box: rotates who is the file rank
  };

  const CheckpointFlow flow_;
  std::vector<std::unique_ptr<CheckpointPieces>> classes_;  // tensors of one shape and layout
  std::vector<Tensor> tensors_;
  int64_t boxes_ = 0;
  int64_t box_bytes_max_ = 0;
  int64_t packed_bytes_max_ = 0;
  int messages_max_ = 0;
  // NextPiece looks next at this tensor, and at this one of the boxes that meet the rank's region.
  size_t tensor_ = 0;
  int64_t own_ = 0;
};

}  // namespace sluice

#endif  // SLUICE_SRC_PLAN_SHARD_CHECKPOINT_PLAN_H_
