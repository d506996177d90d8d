// Boxes of a row-major tensor, each of which is one range of bytes.
#include "plan/shard/checkpoint_pieces.h"

#include <algorithm>

#include "tensor/round.h"

namespace sluice {

CheckpointPieces::CheckpointPieces(const CheckpointPlanTensor& tensor, int64_t piece_bytes,
                                   CheckpointFlow flow)
    : shape_(tensor.shape),
      element_bytes_(tensor.element_bytes),
      piece_bytes_(piece_bytes),
      loads_(flow == CheckpointFlow::kLoad) {
  if (std::find(shape_.begin(), shape_.end(), 0) == shape_.end()) Cut(piece_bytes);
}

void CheckpointPieces::Pack() {
  packs_ = true;
  Cut(piece_bytes_ / 2);
}

void CheckpointPieces::Cut(int64_t box_bytes) {
  cut_ = 0;
  while (cut_ + 1 < dims() && BytesOfRow(cut_) > box_bytes) ++cut_;
  const int64_t step_max = std::max<int64_t>(1, box_bytes / BytesOfRow(cut_));
  step_ = CeilDiv(shape_[cut_], CeilDiv(shape_[cut_], step_max));
  ranges_ = CeilDiv(shape_[cut_], step_);
  boxes_ = ranges_;
  for (size_t d = 0; d < cut_; ++d) boxes_ *= shape_[d];
}

int64_t CheckpointPieces::BytesOfRow(size_t dim) const {
  int64_t bytes = element_bytes_;
  for (size_t d = dim + 1; d < dims(); ++d) bytes *= shape_[d];
  return bytes;
}

int64_t CheckpointPieces::BytesOf(int64_t box) const {
  const auto [begin, end] = RangeOf(box);
  return (end - begin) * BytesOfRow(cut_);
}

int64_t CheckpointPieces::OffsetOf(int64_t box) const {
  return (box / ranges_ * shape_[cut_] + RangeOf(box).first) * BytesOfRow(cut_);
}

CheckpointPieces::Indices CheckpointPieces::PrefixOf(int64_t box) const {
  Indices prefix{};
  box /= ranges_;
  for (size_t d = cut_; d-- > 0;) {
    prefix[d] = box % shape_[d];
    box /= shape_[d];
  }
  return prefix;
}

std::pair<int64_t, int64_t> CheckpointPieces::RangeOf(int64_t box) const {
  const int64_t begin = RangeNumberOf(box) * step_;
  return {begin, std::min(begin + step_, shape_[cut_])};
}

// The sum of the digits of `number` to the base `count`, modulo `count`. It goes round like the
// last digit does. It does not stand still for numbers that are `count` apart, as those of one
// region's boxes may be.
int64_t CheckpointPieces::TurnOf(int64_t number, int64_t count) {
  if (count == 1) return 0;
  int64_t sum = 0;
  for (; number > 0; number /= count) sum += number % count;
  return sum % count;
}

void CheckpointPieces::OtherParts(const CheckpointPiece& piece, int64_t turn,
                                  CheckpointParts* others) const {
  for (int64_t share = 0; share < SharesOf(piece.box); ++share) {
    std::vector<int> ranks = MembersOf(piece.box, share, turn);
    std::erase(ranks, piece.file_rank);
    if (!ranks.empty()) Append(piece.box, share, others).ranks = std::move(ranks);
  }
}

CheckpointPart CheckpointPieces::EmptyPart(int64_t box) const {
  CheckpointPart part;
  part.first_dim = static_cast<int>(cut_);
  part.dims = static_cast<int>(dims() - cut_);
  const auto [begin, end] = RangeOf(box);
  part.box_size[0] = end - begin;
  std::copy(shape_.begin() + part.first_dim + 1, shape_.end(), part.box_size.begin() + 1);
  part.elements = 1;
  return part;
}

}  // namespace sluice
