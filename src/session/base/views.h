// Memory that the caller gives to a run: is it what the layouts say, and is it safe to use.
#ifndef SLUICE_SRC_SESSION_BASE_VIEWS_H_
#define SLUICE_SRC_SESSION_BASE_VIEWS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "session/base/memory_rules.h"
#include "sluice/tensor.h"

namespace sluice {

// A view in the terms that copies use. Without elements, base is null.
struct BoundView {
  // The first cache line has what most views differ in: see IsBoundTo.
  std::byte* base = nullptr;  // address of position (0, 0, ...)
  DeviceKind kind = DeviceKind::kCpu;
  int8_t dims = 0;
  int8_t element_bytes = 1;
  std::array<int64_t, kMaxTensorDims> shape{};
  std::array<int64_t, kMaxTensorDims> stride_bytes{};

  friend bool operator==(const BoundView&, const BoundView&) = default;
};

// The shape and dtype that a side needs of one tensor's view.
struct ViewNeed {
  std::vector<int64_t> shape;  // of the local tensor; without elements, any view will do
  DType dtype = DType::kF32;
};

// Checks `view` against `need` and `rules`, and translates it. `writable` views must not name one
// byte twice (self_overlap.h); others may. Strides of dimensions with one position are not looked
// at. Does not look at the memory.
absl::Status BindView(const TensorView& view, const ViewNeed& need, const MemoryRules& rules,
                      bool writable, BoundView* bound);

// True if BindView of `view` would come to `bound`, which it came to before, under the same rules.
// False may be wrong. Cheaper: it writes nothing.
bool IsBoundTo(const TensorView& view, const ViewNeed& need, const BoundView& bound);

// True if some byte belongs to both. Exact, except that beyond millions of rows views whose address
// ranges interleave count as overlapping.
bool Overlap(const BoundView& a, const BoundView& b);

// From the first to past the last byte of a view that has elements.
struct AddressRange {
  uintptr_t begin = 0;
  uintptr_t end = 0;
};
AddressRange RangeOf(const BoundView& view);

// A tensor's view on one side.
struct ViewUse {
  size_t tensor = 0;
  bool is_dst = false;
};
// InvalidArgument: these have bytes in common. `names`: one per tensor; `numbers`, too: what the
// caller calls them; none: as they are.
absl::Status SharedMemoryError(const ViewUse& a, const ViewUse& b,
                               absl::Span<const absl::string_view> names,
                               absl::Span<const int> numbers = {});

// Finds tensors whose memory is used twice, at least once as a destination. InvalidArgument names
// two of them, as SharedMemoryError does.
absl::Status CheckAliasing(absl::Span<const BoundView> src, absl::Span<const BoundView> dst,
                           absl::Span<const absl::string_view> names,
                           absl::Span<const int> numbers = {});

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_BASE_VIEWS_H_
