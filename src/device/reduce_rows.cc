// Folds of fourteen types by four operations, compiled for several instruction sets.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/reduce_rows.cc"
#include <hwy/foreach_target.h>
// Must come after foreach_target.h.
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "device/prefetcher.h"
#include "device/small_float.inc"

#ifndef SLUICE_SRC_DEVICE_REDUCE_ROWS_CC_ONCE_
#define SLUICE_SRC_DEVICE_REDUCE_ROWS_CC_ONCE_
#include <limits>
#include <type_traits>

#include "device/reduce_rows.h"
#include "sluice/layout.h"
#include "sluice/tensor.h"
#include "tensor/check.h"

namespace sluice {
namespace {

// Between two calls of the prefetcher, which cost as much as a line or two.
constexpr int64_t kSegmentBytes = 256;

template <typename T>
void DivideIntegers(std::byte* dst, int64_t elements, int64_t divisor) {
  using Wide = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
  for (int64_t i = 0; i < elements; ++i) {
    T value;
    std::memcpy(&value, dst + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
    value = static_cast<T>(static_cast<Wide>(value) / static_cast<Wide>(divisor));
    std::memcpy(dst + i * static_cast<int64_t>(sizeof(T)), &value, sizeof(T));
  }
}

// The folds of one type on one instruction set.
struct Folds {
  struct Ways {
    FoldRow row;
    FoldRow stream;  // or null
  };
  Ways sum;
  Ways max;
  Ways min;
  Ways product;
  DivideRow divide;
};

struct Reductions {
  Folds f64;
  Folds f32;
  Folds f16;
  Folds bf16;
  Folds f8e4m3;
  Folds f8e5m2;
  Folds i64;
  Folds i32;
  Folds i8;
  Folds u8;
  Folds i16;
  Folds u16;
  Folds u32;
  Folds u64;
};

}  // namespace
}  // namespace sluice
#endif  // SLUICE_SRC_DEVICE_REDUCE_ROWS_CC_ONCE_

HWY_BEFORE_NAMESPACE();
namespace sluice {
namespace {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// `value`, or the one NaN where `decides` is any NaN.
template <class D, class V>
HWY_INLINE V WithOneNaN(D d, V decides, V value) {
  if constexpr (std::is_floating_point_v<hn::TFromD<D>>) {
    const auto nan = hn::Set(d, std::numeric_limits<hn::TFromD<D>>::quiet_NaN());
    return hn::IfThenElse(hn::IsNaN(decides), nan, value);
  } else {
    return value;
  }
}

struct Sum {
  template <class D, class V>
  static HWY_INLINE V Apply(D d, V left, V right) {
    const V sum = hn::Add(left, right);
    return WithOneNaN(d, sum, sum);
  }
};

// Equal values, such as zeros of two signs, keep what is in left; so does a NaN there.
struct Larger {
  template <class D, class V>
  static HWY_INLINE V Apply(D d, V left, V right) {
    const V larger = hn::IfThenElse(hn::Gt(right, left), right, left);
    return WithOneNaN(d, right, WithOneNaN(d, larger, larger));
  }
};

struct Smaller {
  template <class D, class V>
  static HWY_INLINE V Apply(D d, V left, V right) {
    const V smaller = hn::IfThenElse(hn::Lt(right, left), right, left);
    return WithOneNaN(d, right, WithOneNaN(d, smaller, smaller));
  }
};

struct Product {
  template <class D, class V>
  static HWY_INLINE V Apply(D d, V left, V right) {
    const V product = hn::Mul(left, right);
    return WithOneNaN(d, product, product);
  }
};

// How a row's elements become vectors and vectors elements: types that processors compute in.
template <typename T>
struct Whole {
  using Element = T;
  using Tag = hn::ScalableTag<T>;

  static HWY_INLINE hn::Vec<Tag> Load(const T* src) { return hn::LoadU(Tag(), src); }
  static HWY_INLINE void Store(hn::Vec<Tag> value, T* dst) { hn::StoreU(value, Tag(), dst); }
  // To a whole vector's alignment.
  static HWY_INLINE void Stream(hn::Vec<Tag> value, T* dst) { hn::Stream(value, Tag(), dst); }
};

// The others are computed in f32.
template <class Format>
struct Small {
  using Element = typename Format::Code;
  using Tag = Floats;

  static HWY_INLINE FloatVec Load(const Element* src) { return Widened<Format>::Load(src); }
  static HWY_INLINE void Store(FloatVec value, Element* dst) {
    Narrowed<Format>::Store(value, dst);
  }
  static HWY_INLINE void Stream(FloatVec value, Element* dst) {
    hn::Stream(Narrowed<Format>::Codes(value), typename Narrowed<Format>::Tag(), dst);
  }
};

template <class Access, class Operation>
HWY_INLINE hn::Vec<typename Access::Tag> Folded(const typename Access::Element* left,
                                                const typename Access::Element* right) {
  return Operation::Apply(typename Access::Tag(), Access::Load(left), Access::Load(right));
}

template <class Access, class Operation>
void Fold(const std::byte* left, const std::byte* right, std::byte* dst, int64_t elements) {
  using T = typename Access::Element;
  const typename Access::Tag d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto* first = reinterpret_cast<const T*>(left);
  const auto* second = reinterpret_cast<const T*>(right);
  auto* to = reinterpret_cast<T*>(dst);
  for (; elements >= lanes; elements -= lanes, first += lanes, second += lanes, to += lanes) {
    Access::Store(Folded<Access, Operation>(first, second), to);
  }
  if (elements <= 0) return;
  HWY_ALIGN T few_first[hn::MaxLanes(d)] = {};
  HWY_ALIGN T few_second[hn::MaxLanes(d)] = {};
  const size_t bytes = static_cast<size_t>(elements) * sizeof(T);
  std::memcpy(few_first, first, bytes);
  std::memcpy(few_second, second, bytes);
  Access::Store(Folded<Access, Operation>(few_first, few_second), few_first);
  std::memcpy(to, few_first, bytes);
}

template <class Access, class Operation>
void StreamFold(const std::byte* left, const std::byte* right, std::byte* dst, int64_t elements) {
  using T = typename Access::Element;
  constexpr auto kBytes = static_cast<int64_t>(sizeof(T));
  constexpr int64_t kLine = kCacheLineBytes / kBytes;
  const auto lanes = static_cast<int64_t>(hn::Lanes(typename Access::Tag()));
  const auto to_line = static_cast<int64_t>(-reinterpret_cast<uintptr_t>(dst) % kCacheLineBytes);
  // No vector may be streamed if no element begins a line.
  if (to_line % kBytes != 0) return Fold<Access, Operation>(left, right, dst, elements);
  int64_t at = std::min(elements, to_line / kBytes);
  Fold<Access, Operation>(left, right, dst, at);
  Prefetcher ahead_left(left, 1, 0, std::max<int64_t>(elements, 1) * kBytes, kSegmentBytes);
  Prefetcher ahead_right(right, 1, 0, std::max<int64_t>(elements, 1) * kBytes, kSegmentBytes);
  for (int64_t segment = 0; segment < elements; segment += kSegmentBytes / kBytes) {
    ahead_left.Next();
    ahead_right.Next();
    const int64_t end = std::min(segment + kSegmentBytes / kBytes, elements);
    for (; at + kLine <= end; at += kLine) {
      const auto* first = reinterpret_cast<const T*>(left + at * kBytes);
      const auto* second = reinterpret_cast<const T*>(right + at * kBytes);
      auto* to = reinterpret_cast<T*>(dst + at * kBytes);
      for (int64_t i = 0; i < kLine; i += lanes) {
        Access::Stream(Folded<Access, Operation>(first + i, second + i), to + i);
      }
    }
  }
  const int64_t done = at * kBytes;
  Fold<Access, Operation>(left + done, right + done, dst + done, elements - at);
}

// Vectors of some integers have no product everywhere, and the compiler knows how to do without.
template <typename T>
void MultiplyIntegers(const std::byte* left, const std::byte* right, std::byte* dst,
                      int64_t elements) {
  for (int64_t i = 0; i < elements; ++i) {
    T first;
    T second;
    std::memcpy(&first, left + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
    std::memcpy(&second, right + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
    first = static_cast<T>(static_cast<uint64_t>(first) * static_cast<uint64_t>(second));
    std::memcpy(dst + i * static_cast<int64_t>(sizeof(T)), &first, sizeof(T));
  }
}

template <class Access>
HWY_INLINE void DivideVector(typename Access::Element* dst, hn::Vec<typename Access::Tag> by) {
  const typename Access::Tag d;
  const auto quotient = hn::Div(Access::Load(dst), by);
  Access::Store(WithOneNaN(d, quotient, quotient), dst);
}

template <class Access>
void Divide(std::byte* dst, int64_t elements, int64_t divisor) {
  using T = typename Access::Element;
  const typename Access::Tag d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto by = hn::Set(d, static_cast<hn::TFromD<typename Access::Tag>>(divisor));
  auto* to = reinterpret_cast<T*>(dst);
  for (; elements >= lanes; elements -= lanes, to += lanes) DivideVector<Access>(to, by);
  if (elements <= 0) return;
  HWY_ALIGN T few[hn::MaxLanes(d)] = {};
  std::memcpy(few, to, static_cast<size_t>(elements) * sizeof(T));
  DivideVector<Access>(few, by);
  std::memcpy(to, few, static_cast<size_t>(elements) * sizeof(T));
}

// Highway may write 16 bytes whatever a vector's length, and a line holds whole vectors.
template <class Access, class Operation>
constexpr Folds::Ways WaysOf() {
  constexpr size_t kBytes = hn::MaxLanes(typename Access::Tag()) * sizeof(typename Access::Element);
  if constexpr (kBytes < HWY_STREAM_MULTIPLE || kBytes > kCacheLineBytes) {
    return {&Fold<Access, Operation>, nullptr};
  } else {
    return {&Fold<Access, Operation>, &StreamFold<Access, Operation>};
  }
}

template <class Access>
constexpr Folds FloatFolds() {
  return {WaysOf<Access, Sum>(), WaysOf<Access, Larger>(), WaysOf<Access, Smaller>(),
          WaysOf<Access, Product>(), &Divide<Access>};
}

template <typename T>
constexpr Folds IntegerFolds() {
  return {WaysOf<Whole<std::make_unsigned_t<T>>, Sum>(),
          WaysOf<Whole<T>, Larger>(),
          WaysOf<Whole<T>, Smaller>(),
          {&MultiplyIntegers<T>, nullptr},
          &DivideIntegers<T>};
}

const Reductions* AllReductions() {
  static constexpr Reductions kReductions = {
      FloatFolds<Whole<double>>(), FloatFolds<Whole<float>>(),  FloatFolds<Small<F16>>(),
      FloatFolds<Small<BF16>>(),   FloatFolds<Small<F8E4M3>>(), FloatFolds<Small<F8E5M2>>(),
      IntegerFolds<int64_t>(),     IntegerFolds<int32_t>(),     IntegerFolds<int8_t>(),
      IntegerFolds<uint8_t>(),     IntegerFolds<int16_t>(),     IntegerFolds<uint16_t>(),
      IntegerFolds<uint32_t>(),    IntegerFolds<uint64_t>()};
  return &kReductions;
}

}  // namespace HWY_NAMESPACE
}  // namespace
}  // namespace sluice
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice {
namespace {

HWY_EXPORT(AllReductions);

const Folds* FoldsOf(const Reductions& reductions, DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return &reductions.f64;
    case DType::kF32:
      return &reductions.f32;
    case DType::kF16:
      return &reductions.f16;
    case DType::kBF16:
      return &reductions.bf16;
    case DType::kF8E4M3:
      return &reductions.f8e4m3;
    case DType::kF8E5M2:
      return &reductions.f8e5m2;
    case DType::kI64:
      return &reductions.i64;
    case DType::kI32:
      return &reductions.i32;
    case DType::kI8:
      return &reductions.i8;
    case DType::kU8:
      return &reductions.u8;
    case DType::kI16:
      return &reductions.i16;
    case DType::kU16:
      return &reductions.u16;
    case DType::kU32:
      return &reductions.u32;
    case DType::kU64:
      return &reductions.u64;
    case DType::kBool:
    case DType::kF8E8M0:
    case DType::kF4E2M1x2:
    case DType::kI4x2:
    case DType::kF8E4M3Fnuz:
    case DType::kF8E5M2Fnuz:
    case DType::kC64:
    case DType::kC128:
      return nullptr;
  }
  return nullptr;
}

const Folds::Ways& WaysOf(DType dtype, ReduceOp op) {
  const Folds* const folds = FoldsOf(*HWY_DYNAMIC_DISPATCH(AllReductions)(), dtype);
  SLUICE_CHECK(folds != nullptr, "elements of this type are not reduced");
  switch (op) {
    case ReduceOp::kSum:
    case ReduceOp::kAvg:
      return folds->sum;
    case ReduceOp::kMax:
      return folds->max;
    case ReduceOp::kMin:
      return folds->min;
    case ReduceOp::kProduct:
      return folds->product;
  }
  SLUICE_CHECK(false, "no such operation");
  return folds->sum;
}

}  // namespace

FoldRow FindFold(DType dtype, ReduceOp op) { return WaysOf(dtype, op).row; }

FoldRow FindStreamingFold(DType dtype, ReduceOp op) { return WaysOf(dtype, op).stream; }

DivideRow FindDivide(DType dtype) {
  const Folds* const folds = FoldsOf(*HWY_DYNAMIC_DISPATCH(AllReductions)(), dtype);
  SLUICE_CHECK(folds != nullptr, "no division of this type");
  return folds->divide;
}

}  // namespace sluice
#endif  // HWY_ONCE
