// Loops for five types of sources and three of destinations, compiled for several instruction sets.
//
// No multiplication may be fused with the addition that follows: that rounds once where others
// round twice. So this file is compiled with -ffp-contract=off.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/normalize_rows.cc"
#include <hwy/foreach_target.h>
// Must come after foreach_target.h.
#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "device/small_float.inc"

#ifndef SLUICE_SRC_DEVICE_NORMALIZE_ROWS_CC_ONCE_
#define SLUICE_SRC_DEVICE_NORMALIZE_ROWS_CC_ONCE_
#include <limits>

#include "device/normalize_rows.h"
#include "sluice/tensor.h"

namespace sluice {
namespace {

// The loops of one instruction set.
struct Normalizations {
  struct From {
    NormalizeRow to_f16;
    NormalizeRow to_bf16;
    NormalizeRow to_f32;
  };
  From u8;
  From i16;
  From f16;
  From bf16;
  From f32;
};

}  // namespace
}  // namespace sluice
#endif  // SLUICE_SRC_DEVICE_NORMALIZE_ROWS_CC_ONCE_

HWY_BEFORE_NAMESPACE();
namespace sluice {
namespace {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// How elements become vectors of f32, exactly: integers of at most 16 bits.
template <typename T>
struct FromInteger {
  using Element = T;

  static HWY_INLINE FloatVec Load(const T* src) {
    const auto narrow = hn::LoadU(hn::Rebind<T, Ints>(), src);
    return hn::ConvertTo(Floats(), hn::PromoteTo(Ints(), narrow));
  }
};

template <class Format>
struct FromSmall {
  using Element = typename Format::Code;

  static HWY_INLINE FloatVec Load(const Element* src) { return Widened<Format>::Load(src); }
};

struct FromFloat {
  using Element = float;

  static HWY_INLINE FloatVec Load(const float* src) { return hn::LoadU(Floats(), src); }
};

// How vectors of f32 become elements.
template <class Format>
struct ToSmall {
  using Element = typename Format::Code;

  static HWY_INLINE void Store(FloatVec value, Element* dst) {
    Narrowed<Format>::Store(value, dst);
  }
};

struct ToFloat {
  using Element = float;

  static HWY_INLINE void Store(FloatVec value, float* dst) { hn::StoreU(value, Floats(), dst); }
};

// Which NaN a processor makes, and which of two it keeps, differs: so both are chosen here.
HWY_INLINE FloatVec ScaledAndShifted(FloatVec value, FloatVec scale, FloatVec bias) {
  const Floats d;
  const FloatVec sum = hn::Add(hn::Mul(value, scale), bias);
  const auto is_nan = hn::IsNaN(sum);
  if (HWY_LIKELY(hn::AllFalse(d, is_nan))) return sum;
  const FloatVec made = hn::Set(d, std::numeric_limits<float>::quiet_NaN());
  const FloatVec kept = hn::Or(value, hn::BitCast(d, hn::Set(Words(), kF32Quiet)));
  return hn::IfThenElse(is_nan, hn::IfThenElse(hn::IsNaN(value), kept, made), sum);
}

template <class Source, class Destination>
void Row(const std::byte* src, std::byte* dst, int64_t elements, float scale, float bias) {
  using From = typename Source::Element;
  using To = typename Destination::Element;
  const Floats d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const FloatVec scales = hn::Set(d, scale);
  const FloatVec biases = hn::Set(d, bias);
  const auto one_vector = [&](const From* from, To* to) HWY_ATTR {
    Destination::Store(ScaledAndShifted(Source::Load(from), scales, biases), to);
  };
  const auto* from = reinterpret_cast<const From*>(src);
  auto* to = reinterpret_cast<To*>(dst);
  for (; elements >= lanes; elements -= lanes, from += lanes, to += lanes) one_vector(from, to);
  if (elements <= 0) return;
  HWY_ALIGN From few[hn::MaxLanes(d)] = {};
  HWY_ALIGN To result[hn::MaxLanes(d)];
  std::memcpy(few, from, static_cast<size_t>(elements) * sizeof(From));
  one_vector(few, result);
  std::memcpy(to, result, static_cast<size_t>(elements) * sizeof(To));
}

template <class Source>
constexpr Normalizations::From RowsFrom() {
  return {&Row<Source, ToSmall<F16>>, &Row<Source, ToSmall<BF16>>, &Row<Source, ToFloat>};
}

const Normalizations* AllNormalizations() {
  static constexpr Normalizations kNormalizations = {
      RowsFrom<FromInteger<uint8_t>>(), RowsFrom<FromInteger<int16_t>>(),
      RowsFrom<FromSmall<F16>>(), RowsFrom<FromSmall<BF16>>(), RowsFrom<FromFloat>()};
  return &kNormalizations;
}

}  // namespace HWY_NAMESPACE
}  // namespace
}  // namespace sluice
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice {
namespace {

HWY_EXPORT(AllNormalizations);

const Normalizations::From* RowsOf(const Normalizations& all, DType from) {
  switch (from) {
    case DType::kU8:
      return &all.u8;
    case DType::kI16:
      return &all.i16;
    case DType::kF16:
      return &all.f16;
    case DType::kBF16:
      return &all.bf16;
    case DType::kF32:
      return &all.f32;
    default:
      return nullptr;
  }
}

}  // namespace

NormalizeRow FindNormalize(DType from, DType to) {
  const Normalizations::From* rows = RowsOf(*HWY_DYNAMIC_DISPATCH(AllNormalizations)(), from);
  if (rows == nullptr) return nullptr;
  switch (to) {
    case DType::kF16:
      return rows->to_f16;
    case DType::kBF16:
      return rows->to_bf16;
    case DType::kF32:
      return rows->to_f32;
    default:
      return nullptr;
  }
}

}  // namespace sluice
#endif  // HWY_ONCE
