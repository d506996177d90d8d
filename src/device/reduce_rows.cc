// Folds of fourteen types by four operations, compiled for several instruction sets.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/reduce_rows.cc"
#include <hwy/foreach_target.h>
// Must come after foreach_target.h.
#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

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

// The folds of one type on one instruction set.
struct Folds {
  FoldRow sum;
  FoldRow max;
  FoldRow min;
  FoldRow product;
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
  DivideRow divide_f64;
  DivideRow divide_f32;
  DivideRow divide_f16;
  DivideRow divide_bf16;
  DivideRow divide_f8e4m3;
  DivideRow divide_f8e5m2;
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
  static HWY_INLINE V Apply(D d, V dst, V src) {
    const V sum = hn::Add(dst, src);
    return WithOneNaN(d, sum, sum);
  }
};

// Equal values, such as zeros of two signs, keep what is in dst; so does a NaN in dst.
struct Larger {
  template <class D, class V>
  static HWY_INLINE V Apply(D d, V dst, V src) {
    const V larger = hn::IfThenElse(hn::Gt(src, dst), src, dst);
    return WithOneNaN(d, src, WithOneNaN(d, larger, larger));
  }
};

struct Smaller {
  template <class D, class V>
  static HWY_INLINE V Apply(D d, V dst, V src) {
    const V smaller = hn::IfThenElse(hn::Lt(src, dst), src, dst);
    return WithOneNaN(d, src, WithOneNaN(d, smaller, smaller));
  }
};

struct Product {
  template <class D, class V>
  static HWY_INLINE V Apply(D d, V dst, V src) {
    const V product = hn::Mul(dst, src);
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
};

template <class Access, class Operation>
HWY_INLINE void FoldVector(const typename Access::Element* src, typename Access::Element* dst) {
  const typename Access::Tag d;
  Access::Store(Operation::Apply(d, Access::Load(dst), Access::Load(src)), dst);
}

template <class Access, class Operation>
void Fold(const std::byte* src, std::byte* dst, int64_t elements) {
  using T = typename Access::Element;
  const typename Access::Tag d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto* from = reinterpret_cast<const T*>(src);
  auto* to = reinterpret_cast<T*>(dst);
  for (; elements >= lanes; elements -= lanes, from += lanes, to += lanes) {
    FoldVector<Access, Operation>(from, to);
  }
  if (elements <= 0) return;
  HWY_ALIGN T few_from[hn::MaxLanes(d)] = {};
  HWY_ALIGN T few_to[hn::MaxLanes(d)] = {};
  const size_t bytes = static_cast<size_t>(elements) * sizeof(T);
  std::memcpy(few_from, from, bytes);
  std::memcpy(few_to, to, bytes);
  FoldVector<Access, Operation>(few_from, few_to);
  std::memcpy(to, few_to, bytes);
}

// Vectors of some integers have no product everywhere, and the compiler knows how to do without.
template <typename T>
void MultiplyIntegers(const std::byte* src, std::byte* dst, int64_t elements) {
  for (int64_t i = 0; i < elements; ++i) {
    T from;
    T to;
    std::memcpy(&from, src + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
    std::memcpy(&to, dst + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
    to = static_cast<T>(static_cast<uint64_t>(to) * static_cast<uint64_t>(from));
    std::memcpy(dst + i * static_cast<int64_t>(sizeof(T)), &to, sizeof(T));
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

template <class Access>
constexpr Folds FloatFolds() {
  return {&Fold<Access, Sum>, &Fold<Access, Larger>, &Fold<Access, Smaller>,
          &Fold<Access, Product>};
}

template <typename T>
constexpr Folds IntegerFolds() {
  return {&Fold<Whole<std::make_unsigned_t<T>>, Sum>, &Fold<Whole<T>, Larger>,
          &Fold<Whole<T>, Smaller>, &MultiplyIntegers<T>};
}

const Reductions* AllReductions() {
  static constexpr Reductions kReductions = {
      FloatFolds<Whole<double>>(), FloatFolds<Whole<float>>(),  FloatFolds<Small<F16>>(),
      FloatFolds<Small<BF16>>(),   FloatFolds<Small<F8E4M3>>(), FloatFolds<Small<F8E5M2>>(),
      IntegerFolds<int64_t>(),     IntegerFolds<int32_t>(),     IntegerFolds<int8_t>(),
      IntegerFolds<uint8_t>(),     IntegerFolds<int16_t>(),     IntegerFolds<uint16_t>(),
      IntegerFolds<uint32_t>(),    IntegerFolds<uint64_t>(),    &Divide<Whole<double>>,
      &Divide<Whole<float>>,       &Divide<Small<F16>>,         &Divide<Small<BF16>>,
      &Divide<Small<F8E4M3>>,      &Divide<Small<F8E5M2>>};
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
      return nullptr;
  }
  return nullptr;
}

DivideRow DivisionOf(const Reductions& reductions, DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return reductions.divide_f64;
    case DType::kF32:
      return reductions.divide_f32;
    case DType::kF16:
      return reductions.divide_f16;
    case DType::kBF16:
      return reductions.divide_bf16;
    case DType::kF8E4M3:
      return reductions.divide_f8e4m3;
    case DType::kF8E5M2:
      return reductions.divide_f8e5m2;
    default:
      return nullptr;
  }
}

}  // namespace

FoldRow FindFold(DType dtype, ReduceOp op) {
  const Folds* folds = FoldsOf(*HWY_DYNAMIC_DISPATCH(AllReductions)(), dtype);
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
  return nullptr;
}

DivideRow FindDivide(DType dtype) {
  const DivideRow divide = DivisionOf(*HWY_DYNAMIC_DISPATCH(AllReductions)(), dtype);
  SLUICE_CHECK(divide != nullptr, "no division of this type");
  return divide;
}

}  // namespace sluice
#endif  // HWY_ONCE
