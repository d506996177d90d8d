// Lists of boxes, and whether the boxes of one rank overlap.
#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "mesh/box_index.h"
#include "sluice/layout.h"
#include "sluice/tensor.h"
#include "tensor/error_text.h"

namespace sluice {
namespace {

// Pairs of boxes that are compared for one list: a second or so.
constexpr int64_t kPairsMax = int64_t{1} << 26;

std::string Text(const Box& box) {
  return absl::StrCat("[", absl::StrJoin(box.shape, ","), "] at [", absl::StrJoin(box.offset, ","),
                      "]");
}

bool Overlap(const Box& a, const Box& b) {
  for (size_t d = 0; d < a.shape.size(); ++d) {
    if (a.offset[d] >= b.offset[d] + b.shape[d] || b.offset[d] >= a.offset[d] + a.shape[d]) {
      return false;
    }
  }
  return true;
}

absl::Status CheckBox(const Box& box, size_t dims) {
  const std::string text = absl::StrCat("box ", Text(box));
  if (box.shape.empty() || box.shape.size() > kMaxTensorDims) {
    return absl::InvalidArgumentError(absl::StrCat(
        text, " has ", box.shape.size(), " dimensions; 1 to ", kMaxTensorDims, " are possible"));
  }
  if (box.offset.size() != box.shape.size() || box.shape.size() != dims) {
    return absl::InvalidArgumentError(absl::StrCat(text, ": numbers of dimensions differ"));
  }
  for (size_t d = 0; d < dims; ++d) {
    int64_t end = 0;
    if (box.shape[d] < 1) return absl::InvalidArgumentError(absl::StrCat(text, " is empty"));
    if (box.offset[d] < 0 || __builtin_add_overflow(box.offset[d], box.shape[d], &end)) {
      return absl::InvalidArgumentError(absl::StrCat(text, " lies in no tensor"));
    }
  }
  return absl::OkStatus();
}

// Boxes one after the other along `dim`: the pairs that overlap along it, `left` at most.
absl::Status Sweep(absl::Span<const Box> boxes, size_t dim, int64_t* left) {
  std::vector<size_t> order(boxes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return boxes[a].offset[dim] < boxes[b].offset[dim]; });
  for (size_t i = 0; i < order.size(); ++i) {
    const Box& first = boxes[order[i]];
    const int64_t end = first.offset[dim] + first.shape[dim];
    for (size_t j = i + 1; j < order.size() && boxes[order[j]].offset[dim] < end; ++j) {
      if (--*left < 0) {
        return absl::ResourceExhaustedError(
            absl::StrCat("too many boxes to find out whether any of ", boxes.size(), " overlap"));
      }
      if (Overlap(first, boxes[order[j]])) {
        return absl::InvalidArgumentError(
            absl::StrCat("boxes ", Text(first), " and ", Text(boxes[order[j]]), " overlap"));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status CheckRank(const RankBoxes& of, size_t dims, int64_t* pairs) {
  if (of.rank < 0)
    return MakeError(absl::StatusCode::kInvalidArgument, "there is no ", RankInWords(of.rank));
  if (of.boxes.empty()) return absl::InvalidArgumentError("it has no boxes");
  for (const Box& box : of.boxes) {
    SLUICE_RETURN_IF_ERROR(CheckBox(box, dims));
  }
  std::vector<const Box*> boxes;
  boxes.reserve(of.boxes.size());
  for (const Box& box : of.boxes) boxes.push_back(&box);
  return Sweep(of.boxes, DimOfMostOffsets(boxes), pairs);
}

const std::shared_ptr<const std::vector<RankBoxes>>& NoBoxes() {
  static const auto* const kNone = new std::shared_ptr<const std::vector<RankBoxes>>(
      std::make_shared<const std::vector<RankBoxes>>());
  return *kNone;
}

}  // namespace

BoxList::BoxList() : ranks_(NoBoxes()) {}

absl::StatusOr<BoxList> BoxList::Create(std::vector<RankBoxes> ranks) {
  std::stable_sort(ranks.begin(), ranks.end(),
                   [](const RankBoxes& a, const RankBoxes& b) { return a.rank < b.rank; });
  int64_t boxes = 0;
  int64_t pairs = kPairsMax;
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (i > 0 && ranks[i].rank == ranks[i - 1].rank) {
      return MakeError(absl::StatusCode::kInvalidArgument, RankInWords(ranks[i].rank),
                       " is there twice");
    }
    boxes += static_cast<int64_t>(ranks[i].boxes.size());
    if (boxes > kBoxesMax) {
      return absl::ResourceExhaustedError(absl::StrCat("more than ", kBoxesMax, " boxes"));
    }
    const size_t dims = ranks[0].boxes.empty() ? 0 : ranks[0].boxes[0].shape.size();
    if (absl::Status status = CheckRank(ranks[i], dims, &pairs); !status.ok()) {
      return Annotate(status, RankInWords(ranks[i].rank));
    }
  }
  if (ranks.empty()) return BoxList();
  return BoxList(std::make_shared<const std::vector<RankBoxes>>(std::move(ranks)));
}

absl::Span<const Box> BoxList::Of(int rank) const {
  const auto found =
      std::lower_bound(ranks_->begin(), ranks_->end(), rank,
                       [](const RankBoxes& of, int wanted) { return of.rank < wanted; });
  if (found == ranks_->end() || found->rank != rank) return {};
  return found->boxes;
}

bool operator==(const BoxList& a, const BoxList& b) {
  if (a.ranks_ == b.ranks_) return true;
  return std::equal(a.ranks_->begin(), a.ranks_->end(), b.ranks_->begin(), b.ranks_->end(),
                    [](const RankBoxes& x, const RankBoxes& y) {
                      return x.rank == y.rank && x.boxes == y.boxes;
                    });
}

}  // namespace sluice
