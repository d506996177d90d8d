// One view, or one after the other.
#include "session/connect/tensor_needs.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "session/connect/fit_view.h"
#include "tensor/error_text.h"

namespace sluice {

absl::StatusOr<TensorNeeds> TensorNeeds::Of(const Layout& layout, absl::Span<const int64_t> shape,
                                            DType dtype, int rank) {
  TensorNeeds needs;
  needs.has_boxes_ = !layout.boxes.empty();
  if (needs.has_boxes_) {
    for (const Box& box : layout.boxes.Of(rank)) needs.views_.push_back({box.shape, dtype});
    return needs;
  }
  absl::StatusOr<std::vector<int64_t>> local = LocalShape(layout, shape, rank);
  if (!local.ok()) return local.status();
  needs.views_.push_back({*std::move(local), dtype});
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
