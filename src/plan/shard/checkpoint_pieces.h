// Cuts the tensors of one shape and layout into pieces, and decides who takes part in each.
#ifndef SLUICE_SRC_PLAN_SHARD_CHECKPOINT_PIECES_H_
#define SLUICE_SRC_PLAN_SHARD_CHECKPOINT_PIECES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "plan/shard/checkpoint_plan.h"
#include "tensor/stretch.h"

namespace sluice {

// How the boxes lie in the tensor is decided here. Two kinds decide the ranks' parts of a box.
// Regions are products of index lists, and cells come from lists of boxes.
class CheckpointPieces {
 public:
  virtual ~CheckpointPieces() = default;

  int64_t boxes() const { return boxes_; }
  int64_t BytesOf(int64_t box) const;
  // Bytes of the tensor before the box.
  int64_t OffsetOf(int64_t box) const;
  // True if a part may be no rows of its box, or short rows.
  bool packs() const { return packs_; }
  // The most messages that a file rank has for one piece.
  int messages_max() const { return messages_max_; }

  // The boxes that meet what this rank holds, in ascending order: how many, and which.
  virtual int64_t OwnBoxes() const = 0;
  virtual int64_t OwnBox(int64_t own) const = 0;

  // `turn` rotates who is chosen. It is the same in all calls for one piece.
  //
  // Sets the file rank of one of this rank's boxes, and whether it is alone. False: in a save,
  // others give all that this rank has.
  virtual bool Choose(int64_t box, int64_t turn, CheckpointPiece* piece) const = 0;
  // The parts that CheckpointPlan gives, appended to empty lists.
  virtual void OwnPart(const CheckpointPiece& piece, int64_t turn, CheckpointParts* own) const = 0;
  void OtherParts(const CheckpointPiece& piece, int64_t turn, CheckpointParts* others) const;

 protected:
  using Indices = std::array<int64_t, kMaxTensorDims>;

  CheckpointPieces(const CheckpointPlanTensor& tensor, int64_t piece_bytes, CheckpointFlow flow);

  // The regions or cells that meet a box: how many, who takes part with one, and its part.
  virtual int64_t SharesOf(int64_t box) const = 0;
  virtual std::vector<int> MembersOf(int64_t box, int64_t share, int64_t turn) const = 0;
  virtual CheckpointPart& Append(int64_t box, int64_t share, CheckpointParts* parts) const = 0;

  bool loads() const { return loads_; }
  size_t dims() const { return shape_.size(); }
  int64_t size(size_t dim) const { return shape_[dim]; }
  int64_t BytesOfRow(size_t dim) const;  // of one index of the dimension
  // The dimension in which a box is a range. Dimensions before this one are fixed, and later ones
  // whole.
  size_t cut() const { return cut_; }
  int64_t step() const { return step_; }  // most indices of the range
  // The fixed indices.
  Indices PrefixOf(int64_t box) const;
  // The range.
  std::pair<int64_t, int64_t> RangeOf(int64_t box) const;
  int64_t RangeNumberOf(int64_t box) const { return box % ranges_; }
  // The inverse of the two: `prefix` is all fixed indices as one, row-major.
  int64_t BoxAt(int64_t prefix, int64_t range) const { return prefix * ranges_ + range; }

  // Makes boxes half as large, so that a second area for parts fits beside a box.
  void Pack();
  void set_messages_max(int64_t messages) { messages_max_ = static_cast<int>(messages); }

  // The one of `count` whose turn is `number`.
  static int64_t TurnOf(int64_t number, int64_t count);
  // A run of `length` positions, in the direction of the flow.
  Stretch RunOf(int64_t in_box, int64_t in_part, int64_t length) const {
    return loads_ ? Stretch{in_box, in_part, length} : Stretch{in_part, in_box, length};
  }
  // A part with nothing of the box so far.
  CheckpointPart EmptyPart(int64_t box) const;

 private:
  void Cut(int64_t box_bytes);

  const std::vector<int64_t> shape_;
  const int64_t element_bytes_;
  const int64_t piece_bytes_;
  const bool loads_;
  size_t cut_ = 0;
  int64_t step_ = 1;
  int64_t ranges_ = 0;  // boxes of one prefix
  int64_t boxes_ = 0;
  bool packs_ = false;
  int messages_max_ = 0;
};

// Pieces of a tensor whose layout has placements on a mesh.
std::unique_ptr<CheckpointPieces> RegionPiecesOf(const CheckpointPlanTensor& tensor,
                                                 int64_t piece_bytes, CheckpointFlow flow,
                                                 int rank);
// Pieces of a tensor whose layout has boxes.
std::unique_ptr<CheckpointPieces> CellPiecesOf(const CheckpointPlanTensor& tensor,
                                               int64_t piece_bytes, CheckpointFlow flow, int rank);

}  // namespace sluice

#endif  // SLUICE_SRC_PLAN_SHARD_CHECKPOINT_PIECES_H_
