// Folds of six types by four operations, compiled for several instruction sets.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/reduce_rows.cc"
#include <hwy/foreach_target.h>
// Must come after foreach_target.h.
#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

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
  Folds i64;
  Folds i32;
  Folds i8;
  Folds u8;
  DivideRow divide_f64;
  DivideRow divide_f32;
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

template <typename T, class Operation>
void Fold(const std::byte* src, std::byte* dst, int64_t elements) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto* from = reinterpret_cast<const T*>(src);
  auto* to = reinterpret_cast<T*>(dst);
  for (; elements >= lanes; elements -= lanes, from += lanes, to += lanes) {
    hn::StoreU(Operation::Apply(d, hn::LoadU(d, to), hn::LoadU(d, from)), d, to);
  }
  if (elements <= 0) return;
  HWY_ALIGN T few_from[hn::MaxLanes(d)] = {};
  HWY_ALIGN T few_to[hn::MaxLanes(d)] = {};
  const size_t bytes = static_cast<size_t>(elements) * sizeof(T);
  std::memcpy(few_from, from, bytes);
  std::memcpy(few_to, to, bytes);
  hn::Store(Operation::Apply(d, hn::Load(d, few_to), hn::Load(d, few_from)), d, few_to);
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

template <typename T>
void Divide(std::byte* dst, int64_t elements, int64_t divisor) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto by = hn::Set(d, static_cast<T>(divisor));
  auto* to = reinterpret_cast<T*>(dst);
  for (; elements >= lanes; elements -= lanes, to += lanes) {
    const auto quotient = hn::Div(hn::LoadU(d, to), by);
    hn::StoreU(WithOneNaN(d, quotient, quotient), d, to);
  }
  if (elements <= 0) return;
  HWY_ALIGN T few[hn::MaxLanes(d)] = {};
  std::memcpy(few, to, static_cast<size_t>(elements) * sizeof(T));
  const auto quotient = hn::Div(hn::Load(d, few), by);
  hn::Store(WithOneNaN(d, quotient, quotient), d, few);
  std::memcpy(to, few, static_cast<size_t>(elements) * sizeof(T));
}

template <typename T>
constexpr Folds FoldsOf() {
  if constexpr (std::is_integral_v<T>) {
    return {&Fold<std::make_unsigned_t<T>, Sum>, &Fold<T, Larger>, &Fold<T, Smaller>,
            &MultiplyIntegers<T>};
  } else {
    return {&Fold<T, Sum>, &Fold<T, Larger>, &Fold<T, Smaller>, &Fold<T, Product>};
  }
}

const Reductions* AllReductions() {
  static constexpr Reductions kReductions = {
      FoldsOf<double>(), FoldsOf<float>(),   FoldsOf<int64_t>(), FoldsOf<int32_t>(),
      FoldsOf<int8_t>(), FoldsOf<uint8_t>(), &Divide<double>,    &Divide<float>};
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

const Folds& FoldsOf(const Reductions& reductions, DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return reductions.f64;
    case DType::kF32:
      return reductions.f32;
    case DType::kI64:
      return reductions.i64;
    case DType::kI32:
      return reductions.i32;
    case DType::kI8:
      return reductions.i8;
    default:
      SLUICE_CHECK(dtype == DType::kU8, "no fold of this type");
      return reductions.u8;
  }
}

}  // namespace

FoldRow FindFold(DType dtype, ReduceOp op) {
  const Folds& folds = FoldsOf(*HWY_DYNAMIC_DISPATCH(AllReductions)(), dtype);
  switch (op) {
    case ReduceOp::kSum:
    case ReduceOp::kAvg:
      return folds.sum;
    case ReduceOp::kMax:
      return folds.max;
    case ReduceOp::kMin:
      return folds.min;
    case ReduceOp::kProduct:
      return folds.product;
  }
  SLUICE_CHECK(false, "no such operation");
  return nullptr;
}

DivideRow FindDivide(DType dtype) {
  SLUICE_CHECK(dtype == DType::kF64 || dtype == DType::kF32, "no division of this type");
  const Reductions& reductions = *HWY_DYNAMIC_DISPATCH(AllReductions)();
  return dtype == DType::kF64 ? reductions.divide_f64 : reductions.divide_f32;
}

}  // namespace sluice
#endif  // HWY_ONCE
