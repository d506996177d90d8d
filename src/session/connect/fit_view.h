// Whether a view is what a tensor needs, as Session::Start will ask.
#ifndef SLUICE_SRC_SESSION_CONNECT_FIT_VIEW_H_
#define SLUICE_SRC_SESSION_CONNECT_FIT_VIEW_H_

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "plan/connect/half.h"
#include "session/base/memory_rules.h"
#include "session/base/views.h"
#include "sluice/tensor.h"

namespace sluice {

// As BindView and CheckMemory. InvalidArgument as well where the view's dtype is none.
inline absl::Status FitView(const TensorView& view, const ViewNeed& need, const MemoryRules& rules,
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

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_CONNECT_FIT_VIEW_H_
