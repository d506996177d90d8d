// Checks a rank's view of a tensor: of its local tensor, or of each of its boxes.
#ifndef SLUICE_SRC_SESSION_CONNECT_TENSOR_NEEDS_H_
#define SLUICE_SRC_SESSION_CONNECT_TENSOR_NEEDS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "session/base/memory_rules.h"
#include "session/base/views.h"
#include "sluice/layout.h"
#include "sluice/tensor.h"

namespace sluice {

class TensorNeeds {
 public:
  // The needs of a rank that has nothing.
  TensorNeeds() = default;

  // Errors as LocalShape.
  static absl::StatusOr<TensorNeeds> Of(const Layout& layout, absl::Span<const int64_t> shape,
                                        DType dtype, int rank);

  // How many views there are: one, or one of each box.
  size_t views() const { return views_.size(); }

  // Whether a view has no memory at all.
  bool IsLacking(const TensorView& view) const;

  // As FitView, of all views. Sets as many of `bound`. Errors name a box.
  absl::Status Fit(const TensorView& view, const MemoryRules& rules, bool writable,
                   std::vector<BoundView>* bound) const;

 private:
  bool has_boxes_ = false;
  std::vector<ViewNeed> views_;
};

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_CONNECT_TENSOR_NEEDS_H_
