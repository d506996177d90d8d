// One view, or one after the other.
#include "session/connect/tensor_needs.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "plan/connect/half.h"
#include "tensor/error_text.h"

namespace sluice {
namespace {

// As BindView and CheckMemory. InvalidArgument as well where the view's dtype is none.
absl::Status FitView(const TensorView& view, const ViewNeed& need, const MemoryRules& rules,
                     bool writable, BoundView* bound) {
  if (view.dtype > kLastDType) {
    return absl::InvalidArgumentError(
        absl::StrCat("view has dtype ", static_cast<int>(view.dtype), ", which there is not"));
  }
  if (absl::Status status = BindView(view, need, rules, writable, bound); !status.ok()) {
    return status;
  }
  return bound->base == nullptr ? absl::OkStatus() : CheckMemory(rules, bound->base, bound->kind);
}

}  // namespace

absl::StatusOr<TensorNeeds> TensorNeeds::Of(const Layout& layout, absl::Span<const int64_t> shape,
                                            DType dtype, int rank) {
  TensorNeeds needs;
  needs.has_boxes_ = !layout.boxes.empty();
  if (needs.has_boxes_) {
    for (const Box& box : layout.boxes.Of(rank)) needs.views_.push_back({box.shape, dtype});
    return needs;
  }
  SLUICE_ASSIGN_OR_RETURN(std::vector<int64_t> local, LocalShape(layout, shape, rank));
  needs.views_.push_back({std::move(local), dtype});
  return needs;
}

bool TensorNeeds::IsLacking(const TensorView& view) const {
  if (!has_boxes_) return view.data == nullptr;
  return absl::c_all_of(view.boxes, [](const TensorView& box) { return box.data == nullptr; });
}

absl::Status TensorNeeds::Fit(const TensorView& view, const MemoryRules& rules, bool writable,
                              std::vector<BoundView>* bound) const {
  bound->assign(views_.size(), BoundView());
  if (!has_boxes_) {
    return views_.empty() ? absl::OkStatus()
                          : FitView(view, views_[0], rules, writable, &(*bound)[0]);
  }
  if (view.boxes.size() != views_.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("views of ", view.boxes.size(), " boxes, but this rank has ", views_.size()));
  }
  for (size_t b = 0; b < views_.size(); ++b) {
    const absl::Status status = FitView(view.boxes[b], views_[b], rules, writable, &(*bound)[b]);
    if (status.ok()) continue;
    return MakeError(status.code(), "box ", b, ": ", status);
  }
  return absl::OkStatus();
}

}  // namespace sluice
