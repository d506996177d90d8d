// The order of pieces over all tensors.
#include "plan/shard/checkpoint_plan.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "plan/shard/checkpoint_pieces.h"
#include "plan/tensor_classes.h"
#include "tensor/check.h"

namespace sluice {
CheckpointPlan::CheckpointPlan(const std::vector<CheckpointPlanTensor>& tensors,
                               int64_t piece_bytes, CheckpointFlow flow, int rank)
    : flow_(flow) {
  // Tensors of equal shape, element size and layout: all but where they begin.
  struct Class {
    CheckpointPieces* pieces = nullptr;
    int64_t turn = 0;  // of the next box
  };
  TensorClasses layouts;
  absl::flat_hash_map<std::string, Class> known;
  for (const CheckpointPlanTensor& tensor : tensors) {
    std::string key = absl::StrCat(absl::StrJoin(tensor.shape, ","), ":", tensor.element_bytes);
    layouts.AppendLayout(tensor.layout, &key);
    layouts.AppendSlice(tensor.layout, &key);
    Class& of = known[std::move(key)];
    if (of.pieces == nullptr) {
      classes_.push_back(tensor.layout.boxes.empty()
                             ? RegionPiecesOf(tensor, piece_bytes, flow, rank)
                             : CellPiecesOf(tensor, piece_bytes, flow, rank));
      of = {classes_.back().get(), boxes_};
      if (of.pieces->boxes() > 0) {
        const int64_t bytes = of.pieces->BytesOf(0);
        box_bytes_max_ = std::max(box_bytes_max_, bytes);
        if (of.pieces->packs()) packed_bytes_max_ = std::max(packed_bytes_max_, bytes);
        messages_max_ = std::max(messages_max_, of.pieces->messages_max());
      }
    }
    tensors_.push_back({of.pieces, boxes_, of.turn});
    of.turn += of.pieces->boxes();
    boxes_ += of.pieces->boxes();
    SLUICE_CHECK(boxes_ <= kBoxesMax, "more pieces than bucket ids");
  }
}

CheckpointPlan::~CheckpointPlan() = default;

bool CheckpointPlan::NextPiece(CheckpointPiece* piece) {
  for (; !over(); ++tensor_, own_ = 0) {
    const Tensor& tensor = tensors_[tensor_];
    while (own_ < tensor.of->OwnBoxes()) {
      const int64_t box = tensor.of->OwnBox(own_++);
      if (!tensor.of->Choose(box, tensor.turn + box, piece)) continue;
      piece->tensor = static_cast<int>(tensor_);
      piece->box = box;
      piece->number = tensor.first_box + box;
      piece->offset = tensor.of->OffsetOf(box);
      piece->bytes = tensor.of->BytesOf(box);
      return true;
    }
  }
  return false;
}

void CheckpointPlan::OwnPart(const CheckpointPiece& piece, CheckpointParts* own) const {
  const Tensor& tensor = tensors_[static_cast<size_t>(piece.tensor)];
  own->parts.clear();
  own->runs.clear();
  tensor.of->OwnPart(piece, tensor.turn + piece.box, own);
}

void CheckpointPlan::OtherParts(const CheckpointPiece& piece, CheckpointParts* others) const {
  const Tensor& tensor = tensors_[static_cast<size_t>(piece.tensor)];
  others->parts.clear();
  others->runs.clear();
  tensor.of->OtherParts(piece, tensor.turn + piece.box, others);
}

BucketId CheckpointPlan::IdOf(const CheckpointPiece& piece) {
  const uint64_t number = static_cast<uint64_t>(piece.number);
  return BucketId({.window = number >> kRoundBits,
                   .round = number & ((uint64_t{1} << kRoundBits) - 1),
                   .src = static_cast<uint64_t>(piece.file_rank)});
}

}  // namespace sluice
