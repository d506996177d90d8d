// Element types and views of local tensor memory.
//
// A view names memory that the caller owns; nothing here allocates or copies payload.
#ifndef SLUICE_TENSOR_H_
#define SLUICE_TENSOR_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace sluice {

// Tensors have 1 to this many dimensions.
inline constexpr int kMaxTensorDims = 8;

// Values travel between ranks: new ones come at the end. A bool is one byte, 0 or 1. Types from
// kF8E8M0 on are opaque: they move as they are, and are neither cast nor reduced.
enum class DType : uint8_t {
  kF64,
  kF32,
  kF16,
  kBF16,
  kF8E4M3,
  kF8E5M2,
  kI64,
  kI32,
  kI8,
  kU8,
  kI16,
  kU16,
  kU32,
  kU64,
  kBool,
  kF8E8M0,      // OCP MX's scale: an exponent
  kF4E2M1x2,    // two OCP MX floats of four bits: an element is a byte, as PyTorch counts them
  kI4x2,        // two integers of four bits
  kF8E4M3Fnuz,  // of AMD and Graphcore: one zero, no infinity
  kF8E5M2Fnuz,
  kC64,   // two f32: real, imaginary
  kC128,  // two f64
};

// Bytes of one element.
int64_t DTypeBytes(DType dtype);

// Short name, as in case files: "bf16", "f8e4m3".
absl::string_view DTypeName(DType dtype);

// Reads a short name ("bf16") or a safetensors name ("BF16", "F8_E4M3").
// InvalidArgument names the text that is neither.
absl::StatusOr<DType> ParseDType(absl::string_view text);

// Values are DLPack's DLDeviceType (https://dmlc.github.io/dlpack/latest/c_api.html).
enum class DeviceKind : int32_t { kCpu = 1, kCuda = 2, kCudaHost = 3 };

// A strided view of one rank's local tensor, with DLPack's fields. Element (p_0, p_1, ...) lies at
//   data + byte_offset + DTypeBytes(dtype) * sum_d p_d * strides[d].
// The memory must stay valid until every run that uses the view is done.
struct TensorView {
  void* data = nullptr;
  int64_t byte_offset = 0;
  std::vector<int64_t> shape = {};  // elements per dimension
  // In elements, >= 0; empty means dense row-major. Strides of dimensions of size 1 do not matter.
  // A source may repeat and overlap itself: stride 0 is what `expand` gives. A destination may have
  // its dimensions in any order, with gaps, and interleaved, but no two elements at one place. A
  // destination is refused, too, where finding out whether two elements meet takes too long. This
  // happens only where three or more large dimensions interleave in many ways.
  std::vector<int64_t> strides = {};
  DType dtype = DType::kF32;
  DeviceKind device = DeviceKind::kCpu;
  int32_t device_ordinal = 0;
  // For a rank that holds boxes (Layout::boxes): a view of each, in the order of the list. The
  // fields above are then not looked at.
  std::vector<TensorView> boxes = {};
};

// A dense row-major view of host memory at `data`.
TensorView DenseView(void* data, absl::Span<const int64_t> shape, DType dtype);

// A view of memory that is only read, for sources. Any TensorView is one. It is no TensorView
// itself, so that a destination of const memory does not compile.
class SourceView {
 public:
  SourceView() = default;
  SourceView(TensorView view) : view_(std::move(view)) {}  // NOLINT(google-explicit-constructor)

  // For code that reads, and only reads, at its address.
  const TensorView& view() const { return view_; }

 private:
  template <typename Elements>
  friend auto DenseView(Elements&& elements, absl::Span<const int64_t> shape);
  // DenseView of `count` elements. A shape of another number of elements becomes {count}.
  static TensorView Of(const void* data, size_t count, absl::Span<const int64_t> shape,
                       DType dtype);

  TensorView view_;
};

// The dtype of a C++ number: float, double, bool, or an integer.
template <typename T>
constexpr DType DTypeOfNumber() {
  if constexpr (std::is_same_v<T, float>) return DType::kF32;
  if constexpr (std::is_same_v<T, double>) return DType::kF64;
  if constexpr (std::is_same_v<T, bool>) return DType::kBool;
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    constexpr bool kSigned = std::is_signed_v<T>;
    if constexpr (sizeof(T) == 1) return kSigned ? DType::kI8 : DType::kU8;
    if constexpr (sizeof(T) == 2) return kSigned ? DType::kI16 : DType::kU16;
    if constexpr (sizeof(T) == 4) return kSigned ? DType::kI32 : DType::kU32;
    if constexpr (sizeof(T) == 8) return kSigned ? DType::kI64 : DType::kU64;
  }
  static_assert(std::is_arithmetic_v<T> && sizeof(T) <= 8, "no dtype of this type is known");
}

// The same of a std::vector, an array or a std::span of numbers: a TensorView, or a SourceView if
// the numbers are const. A shape of another number of elements becomes that of one dimension with
// all of them, which Session::Start and others refuse.
template <typename Elements>
auto DenseView(Elements&& elements, absl::Span<const int64_t> shape) {
  static_assert(std::is_lvalue_reference_v<Elements> ||
                    std::ranges::enable_borrowed_range<std::remove_cvref_t<Elements>>,
                "the view would outlive its memory");
  const std::span all(elements);
  using Number = typename decltype(all)::element_type;
  TensorView view =
      SourceView::Of(all.data(), all.size(), shape, DTypeOfNumber<std::remove_cv_t<Number>>());
  if constexpr (std::is_const_v<Number>) {
    return SourceView(std::move(view));
  } else {
    return view;
  }
}

// The sources of a call: a list, a vector, an array or a span of TensorView or of SourceView.
// Valid as long as these.
class SourceViews {
 public:
  SourceViews() = default;
  // NOLINTBEGIN(google-explicit-constructor)
  SourceViews(std::initializer_list<TensorView> views) : views_(views) {}
  SourceViews(std::initializer_list<SourceView> sources) : sources_(sources) {}
  template <typename Views>
  requires std::is_convertible_v<const Views&, absl::Span<const TensorView>> SourceViews(
      const Views& views)
      : views_(views) {}
  template <typename Views>
  requires std::is_convertible_v<const Views&, absl::Span<const SourceView>> SourceViews(
      const Views& sources)
      : sources_(sources) {}
  // NOLINTEND(google-explicit-constructor)

  // `memory` is for views that have to be copied.
  absl::Span<const TensorView> views(std::vector<TensorView>* memory) const;

 private:
  absl::Span<const TensorView> views_;
  absl::Span<const SourceView> sources_;
};

// Strides in elements of a dense row-major tensor of `shape`.
std::vector<int64_t> DenseStrides(absl::Span<const int64_t> shape);

}  // namespace sluice

#endif  // SLUICE_TENSOR_H_
