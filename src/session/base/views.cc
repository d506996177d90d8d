// Checks on strided views.
#include "session/base/views.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "session/base/self_overlap.h"
#include "tensor/error_text.h"
#include "tensor/round.h"

namespace sluice {
namespace {

// Dimensions that reach more than one position, largest stride first.
struct Axis {
  int64_t stride_bytes;
  int64_t size;
};
using Axes = absl::InlinedVector<Axis, kMaxTensorDims>;

Axes AxesOf(const BoundView& view) {
  Axes axes;
  for (size_t d = 0; d < static_cast<size_t>(view.dims); ++d) {
    if (view.shape[d] > 1) axes.push_back({view.stride_bytes[d], view.shape[d]});
  }
  absl::c_sort(axes, [](const Axis& a, const Axis& b) { return a.stride_bytes > b.stride_bytes; });
  return axes;
}

// Bytes from the first to behind the last of axes [first, count).
int64_t Span(const Axes& axes, size_t first, int64_t element_bytes) {
  int64_t span = element_bytes;
  for (size_t i = first; i < axes.size(); ++i) {
    span += axes[i].stride_bytes * (axes[i].size - 1);
  }
  return span;
}

uintptr_t Address(const BoundView& view) { return reinterpret_cast<uintptr_t>(view.base); }

// True if the part of a view from axis `first` on, at address `at`, has a byte in [low, high).
bool Touches(const Axes& axes, size_t first, int64_t element_bytes, int64_t at, int64_t low,
             int64_t high) {
  const int64_t span = Span(axes, first, element_bytes);
  if (at >= high || at + span <= low) return false;
  if (first == axes.size()) return true;
  const auto [stride, size] = axes[first];
  if (stride == 0) return Touches(axes, first + 1, element_bytes, at, low, high);
  // Only positions whose own span reaches into [low, high) can touch it.
  const int64_t below = Span(axes, first + 1, element_bytes);
  const int64_t from = std::max<int64_t>(0, (low - at - below) / stride);
  const int64_t to = std::min(size - 1, (high - 1 - at) / stride);
  for (int64_t i = from; i <= to; ++i) {
    if (Touches(axes, first + 1, element_bytes, at + i * stride, low, high)) return true;
  }
  return false;
}

// The inner axes that form one contiguous stretch: how many outer axes are left, and its bytes.
std::pair<size_t, int64_t> ContiguousTail(const Axes& axes, int64_t element_bytes) {
  size_t outer = axes.size();
  int64_t bytes = element_bytes;
  while (outer > 0 && axes[outer - 1].stride_bytes <= bytes) {
    bytes = Span(axes, --outer, element_bytes);
  }
  return {outer, bytes};
}

// Beyond this many stretches an exact answer costs more than it is worth.
constexpr int64_t kRowsMax = int64_t{1} << 22;

bool AnyRowTouches(const Axes& rows, size_t axis, size_t outer, int64_t row_bytes, int64_t at,
                   const Axes& other, const BoundView& other_view) {
  if (axis == outer) {
    return Touches(other, 0, other_view.element_bytes, static_cast<int64_t>(Address(other_view)),
                   at, at + row_bytes);
  }
  for (int64_t i = 0; i < rows[axis].size; ++i) {
    if (AnyRowTouches(rows, axis + 1, outer, row_bytes, at + i * rows[axis].stride_bytes, other,
                      other_view)) {
      return true;
    }
  }
  return false;
}

// Rounded down and up, also where `a` is negative.
int64_t FloorDiv(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

// Stretches in rows of rows: the axes that are left of a view, outermost first.
struct Stretches {
  const Axes* axes;
  size_t outer;  // axes before this one are rows, those behind make up a stretch
  int64_t element_bytes;

  int64_t SpanFrom(size_t first) const { return Span(*axes, first, element_bytes); }
};

// Whether some stretch of `a` and some of `b` share a byte, if `b` begins `apart` bytes behind `a`.
// For rows of one stride only the distance of two rows matters. So views of one fused tensor take
// as many steps as they have axes. None: the search takes more than `*steps`.
std::optional<bool> Meet(const Stretches& a, size_t i, const Stretches& b, size_t j, int64_t apart,
                         int64_t* steps) {
  const int64_t span_a = a.SpanFrom(i), span_b = b.SpanFrom(j);
  if (apart >= span_a || apart + span_b <= 0) return false;
  if (i == a.outer && j == b.outer) return true;
  const int64_t stride_a = i < a.outer ? (*a.axes)[i].stride_bytes : 0;
  const int64_t stride_b = j < b.outer ? (*b.axes)[j].stride_bytes : 0;
  const int64_t stride = std::max(stride_a, stride_b);
  const bool of_a = stride_a == stride, of_b = stride_b == stride;
  // Row y of `b` and row x of `a` are apart + (y - x) * stride bytes apart.
  const int64_t rest_a = of_a ? a.SpanFrom(i + 1) : span_a;
  const int64_t rest_b = of_b ? b.SpanFrom(j + 1) : span_b;
  const int64_t least =
      std::max(of_a ? 1 - (*a.axes)[i].size : 0, CeilDiv(1 - rest_b - apart, stride));
  const int64_t most =
      std::min(of_b ? (*b.axes)[j].size - 1 : 0, FloorDiv(rest_a - 1 - apart, stride));
  for (int64_t rows = least; rows <= most; ++rows) {
    if (--*steps < 0) return std::nullopt;
    const std::optional<bool> met =
        Meet(a, i + (of_a ? 1 : 0), b, j + (of_b ? 1 : 0), apart + rows * stride, steps);
    if (!met || *met) return met;
  }
  return false;
}

// Before all rows of the one view are compared with the other.
constexpr int64_t kBoxStepsMax = 1 << 10;

int64_t RowCount(const Axes& axes, size_t outer) {
  int64_t rows = 1;
  for (size_t i = 0; i < outer; ++i) {
    rows = std::min(kRowsMax + 1, rows * std::min(axes[i].size, kRowsMax));
  }
  return rows;
}

bool RangesOverlap(const BoundView& a, const BoundView& b) {
  const Axes axes_a = AxesOf(a), axes_b = AxesOf(b);
  const uintptr_t end_a = Address(a) + static_cast<uintptr_t>(Span(axes_a, 0, a.element_bytes));
  const uintptr_t end_b = Address(b) + static_cast<uintptr_t>(Span(axes_b, 0, b.element_bytes));
  return Address(a) < end_b && Address(b) < end_a;
}

// The farthest reach of a view, in bytes: any place in memory and twice as much are numbers, too.
constexpr int64_t kReachMax = int64_t{1} << 62;

std::string ShapeText(absl::Span<const int64_t> shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ","), "]");
}

absl::Status CheckSelfOverlap(const TensorView& view, absl::Span<const int64_t> strides) {
  const auto refuse = [&view](absl::string_view why) {
    return absl::InvalidArgumentError(absl::StrCat("destination view of shape ",
                                                   ShapeText(view.shape), " with strides ",
                                                   ShapeText(view.strides), " ", why));
  };
  switch (FindSelfOverlap(view.shape, strides.first(view.shape.size()))) {
    case SelfOverlap::kNo:
      return absl::OkStatus();
    case SelfOverlap::kYes:
      return refuse("overlaps itself");
    case SelfOverlap::kUnknown:
      return refuse("may overlap itself: its strides interleave in too many ways to find out");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status BindView(const TensorView& view, const ViewNeed& need, const MemoryRules& rules,
                      bool writable, BoundView* bound) {
  *bound = BoundView();
  if (std::find(need.shape.begin(), need.shape.end(), 0) != need.shape.end()) {
    return absl::OkStatus();
  }
  if (view.shape != need.shape) {
    return absl::InvalidArgumentError(absl::StrCat("view has shape ", ShapeText(view.shape),
                                                   ", the layout needs ", ShapeText(need.shape)));
  }
  if (view.dtype != need.dtype) {
    return absl::InvalidArgumentError(absl::StrCat("view has dtype ", DTypeName(view.dtype),
                                                   ", the transfer ", DTypeName(need.dtype)));
  }
  if (absl::Status status = CheckKind(rules, view); !status.ok()) return status;
  if (view.data == nullptr) return absl::InvalidArgumentError("view has no data");
  if (!view.strides.empty() && view.strides.size() != view.shape.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "view has ", view.strides.size(), " strides for ", view.shape.size(), " dimensions"));
  }
  const int64_t element_bytes = DTypeBytes(view.dtype);
  bound->base = static_cast<std::byte*>(view.data) + view.byte_offset;
  bound->kind = view.device;
  bound->dims = static_cast<int8_t>(view.shape.size());
  bound->element_bytes = static_cast<int8_t>(element_bytes);
  int64_t dense_stride = 1;
  int64_t span = 0;  // bytes over all dimensions
  std::array<int64_t, kMaxTensorDims> strides{};
  for (size_t d = view.shape.size(); d-- > 0;) {
    // Makers of views write any stride for a dimension of one position.
    const bool given = !view.strides.empty() && view.shape[d] > 1;
    const int64_t stride = given ? view.strides[d] : dense_stride;
    if (stride < 0) {
      return absl::InvalidArgumentError(absl::StrCat("view has stride ", stride, " in dimension ",
                                                     d, ": negative strides are not taken"));
    }
    int64_t reach = 0;
    if (__builtin_mul_overflow(stride, element_bytes, &bound->stride_bytes[d]) ||
        __builtin_mul_overflow(bound->stride_bytes[d], view.shape[d], &reach) ||
        __builtin_add_overflow(span, reach, &span) || span > kReachMax) {
      return absl::InvalidArgumentError(absl::StrCat("view has stride ", stride, " in dimension ",
                                                     d, ": it reaches beyond all memory"));
    }
    bound->shape[d] = view.shape[d];
    strides[d] = stride;
    dense_stride *= view.shape[d];
  }
  return writable ? CheckSelfOverlap(view, strides) : absl::OkStatus();
}

bool IsBoundTo(const TensorView& view, const ViewNeed& need, const BoundView& bound) {
  if (bound.base == nullptr) {
    return std::find(need.shape.begin(), need.shape.end(), 0) != need.shape.end();
  }
  const size_t dims = view.shape.size();
  if (static_cast<std::byte*>(view.data) + view.byte_offset != bound.base ||
      view.device != DeviceKind::kCpu || bound.kind != DeviceKind::kCpu ||
      view.dtype != need.dtype || dims != static_cast<size_t>(bound.dims) ||
      (!view.strides.empty() && view.strides.size() != dims)) {
    return false;
  }
  int64_t dense_stride = bound.element_bytes;
  for (size_t d = dims; d-- > 0;) {
    if (view.shape[d] != bound.shape[d]) return false;
    const bool given = !view.strides.empty() && view.shape[d] > 1;
    int64_t stride = dense_stride;
    if (given && __builtin_mul_overflow(view.strides[d], int64_t{bound.element_bytes}, &stride)) {
      return false;
    }
    if (stride != bound.stride_bytes[d]) return false;
    dense_stride *= view.shape[d];
  }
  return true;
}

bool Overlap(const BoundView& a, const BoundView& b) {
  if (a.base == nullptr || b.base == nullptr || !RangesOverlap(a, b)) return false;
  const Axes axes_a = AxesOf(a), axes_b = AxesOf(b);
  const auto [outer_a, bytes_a] = ContiguousTail(axes_a, a.element_bytes);
  const auto [outer_b, bytes_b] = ContiguousTail(axes_b, b.element_bytes);
  int64_t steps = kBoxStepsMax;
  const auto apart = static_cast<int64_t>(Address(b) - Address(a));
  const std::optional<bool> met = Meet({&axes_a, outer_a, a.element_bytes}, 0,
                                       {&axes_b, outer_b, b.element_bytes}, 0, apart, &steps);
  if (met) return *met;
  const int64_t rows_a = RowCount(axes_a, outer_a), rows_b = RowCount(axes_b, outer_b);
  if (std::min(rows_a, rows_b) > kRowsMax) return true;
  if (rows_a <= rows_b) {
    return AnyRowTouches(axes_a, 0, outer_a, bytes_a, static_cast<int64_t>(Address(a)), axes_b, b);
  }
  return AnyRowTouches(axes_b, 0, outer_b, bytes_b, static_cast<int64_t>(Address(b)), axes_a, a);
}

AddressRange RangeOf(const BoundView& view) {
  const int64_t span = Span(AxesOf(view), 0, view.element_bytes);
  return {Address(view), Address(view) + static_cast<uintptr_t>(span)};
}

absl::Status SharedMemoryError(const ViewUse& a, const ViewUse& b,
                               absl::Span<const absl::string_view> names,
                               absl::Span<const int> numbers) {
  const auto text = [&](const ViewUse& use) {
    const size_t number = numbers.empty() ? use.tensor : static_cast<size_t>(numbers[use.tensor]);
    return ErrorText(use.is_dst ? "destination" : "source", " of ",
                     TensorInWords(number, names[use.tensor]));
  };
  return MakeError(absl::StatusCode::kInvalidArgument, text(a), " and ", text(b),
                   " share memory: nothing moves in place, so give the destination memory of its "
                   "own");
}

absl::Status CheckAliasing(absl::Span<const BoundView> src, absl::Span<const BoundView> dst,
                           absl::Span<const absl::string_view> names,
                           absl::Span<const int> numbers) {
  struct Use {
    AddressRange range;
    const BoundView* view;
    ViewUse use;
  };
  std::vector<Use> uses;
  const auto add = [&uses](absl::Span<const BoundView> views, bool is_dst) {
    for (size_t t = 0; t < views.size(); ++t) {
      if (views[t].base == nullptr) continue;
      uses.push_back({RangeOf(views[t]), &views[t], {t, is_dst}});
    }
  };
  add(src, false);
  add(dst, true);
  std::sort(uses.begin(), uses.end(),
            [](const Use& a, const Use& b) { return a.range.begin < b.range.begin; });
  // Uses whose range reaches beyond the present begin; views of one buffer are few.
  std::vector<const Use*> open;
  for (const Use& use : uses) {
    open.erase(
        std::remove_if(open.begin(), open.end(),
                       [&use](const Use* other) { return other->range.end <= use.range.begin; }),
        open.end());
    for (const Use* other : open) {
      const bool written = use.use.is_dst || other->use.is_dst;
      if (!written || !Overlap(*use.view, *other->view)) continue;
      return SharedMemoryError(other->use, use.use, names, numbers);
    }
    open.push_back(&use);
  }
  return absl::OkStatus();
}

}  // namespace sluice
