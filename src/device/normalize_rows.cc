// Loops for five types of sources and three of destinations, compiled for several instruction sets.
//
// No multiplication may be fused with the addition that follows: that rounds once where others
// round twice. So this file is compiled with -ffp-contract=off.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/normalize_rows.cc"
#include <hwy/foreach_target.h>
// Must come after foreach_target.h.
#include <hwy/highway.h>

#include <algorithm>
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
    NormalizeLoops to_f16;
    NormalizeLoops to_bf16;
    NormalizeLoops to_f32;
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

// Goes through a row by vectors; `factors_at` gives the scales and the biases of the next one.
template <class Source, class Destination, class FactorsAt>
HWY_INLINE void EachVector(const std::byte* src, std::byte* dst, int64_t elements,
                           const FactorsAt& factors_at) {
  using From = typename Source::Element;
  using To = typename Destination::Element;
  const Floats d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto one_vector = [&](const From* from, To* to) HWY_ATTR {
    FloatVec scales;
    FloatVec biases;
    factors_at(&scales, &biases);
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

template <class Source, class Destination>
void Row(const std::byte* src, std::byte* dst, int64_t elements, float scale, float bias) {
  const FloatVec all_scales = hn::Set(Floats(), scale);
  const FloatVec all_biases = hn::Set(Floats(), bias);
  EachVector<Source, Destination>(src, dst, elements,
                                  [&](FloatVec* scales, FloatVec* biases) HWY_ATTR {
                                    *scales = all_scales;
                                    *biases = all_biases;
                                  });
}

template <class Source, class Destination>
void InterleavedRow(const std::byte* src, std::byte* dst, int64_t elements,
                    const RepeatedFactors& factors, int64_t channel) {
  const Floats d;
  static_assert(hn::MaxLanes(d) <= RepeatedFactors::kVectorMax);
  const int64_t step = static_cast<int64_t>(hn::Lanes(d)) % factors.channels;
  EachVector<Source, Destination>(
      src, dst, elements, [&](FloatVec* scales, FloatVec* biases) HWY_ATTR {
        *scales = hn::LoadU(d, factors.scale.data() + channel);
        *biases = hn::LoadU(d, factors.bias.data() + channel);
        channel += step;
        channel = channel >= factors.channels ? channel - factors.channels : channel;
      });
}

// Pixels that are taken apart at once: their channels stay in the first cache.
constexpr int64_t kBlockPixels = 512;

// Copies every `step`-th element: what vectors leave over, and channels of any number.
template <typename T>
HWY_INLINE void Gather(const T* src, int64_t step, int64_t begin, int64_t end, T* to) {
  for (int64_t i = begin; i < end; ++i) std::memcpy(to + i, src + i * step, sizeof(T));
}

// Pixels of two to four channels, one channel behind the other in `to`, kBlockPixels apart.
template <int kChannels, typename T>
HWY_INLINE void TakeApart(const T* src, int64_t pixels, T* to) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t done = 0;
  for (; done + lanes <= pixels; done += lanes) {
    const T* const from = src + done * kChannels;
    hn::Vec<decltype(d)> v0, v1, v2, v3;
    if constexpr (kChannels == 2) hn::LoadInterleaved2(d, from, v0, v1);
    if constexpr (kChannels == 3) hn::LoadInterleaved3(d, from, v0, v1, v2);
    if constexpr (kChannels == 4) hn::LoadInterleaved4(d, from, v0, v1, v2, v3);
    hn::StoreU(v0, d, to + done);
    hn::StoreU(v1, d, to + kBlockPixels + done);
    if constexpr (kChannels > 2) hn::StoreU(v2, d, to + 2 * kBlockPixels + done);
    if constexpr (kChannels > 3) hn::StoreU(v3, d, to + 3 * kBlockPixels + done);
  }
  for (int c = 0; c < kChannels; ++c) {
    Gather(src + c, kChannels, done, pixels, to + c * kBlockPixels);
  }
}

template <class Source, class Destination>
void Planes(const PlanarRow& row) {
  using From = typename Source::Element;
  constexpr int64_t kAtOnce = 4;  // channels
  HWY_ALIGN From apart[kAtOnce * kBlockPixels];
  const auto plane = [&](const From* from, int64_t channel, int64_t pixel, int64_t pixels) {
    const auto c = static_cast<size_t>(channel);
    Row<Source, Destination>(
        reinterpret_cast<const std::byte*>(from),
        row.dst + channel * row.plane_bytes +
            pixel * static_cast<int64_t>(sizeof(typename Destination::Element)),
        pixels, row.factors == nullptr ? row.scale : row.factors->scale[c],
        row.factors == nullptr ? row.bias : row.factors->bias[c]);
  };
  const auto* const src = reinterpret_cast<const From*>(row.src);
  if (row.channels == 1) return plane(src, 0, 0, row.pixels);
  for (int64_t pixel = 0; pixel < row.pixels; pixel += kBlockPixels) {
    const int64_t pixels = std::min(kBlockPixels, row.pixels - pixel);
    const From* const from = src + pixel * row.channels;
    if (row.channels == 2) TakeApart<2>(from, pixels, apart);
    if (row.channels == 3) TakeApart<3>(from, pixels, apart);
    if (row.channels == 4) TakeApart<4>(from, pixels, apart);
    for (int64_t c = 0; c < row.channels; ++c) {
      From* const channel = apart + (row.channels <= kAtOnce ? c * kBlockPixels : 0);
      if (row.channels > kAtOnce) Gather(from + c, row.channels, 0, pixels, channel);
      plane(channel, c, pixel, pixels);
    }
  }
}

template <class Source, class Destination>
constexpr NormalizeLoops Loops() {
  return {&Row<Source, Destination>, &InterleavedRow<Source, Destination>,
          &Planes<Source, Destination>};
}

template <class Source>
constexpr Normalizations::From LoopsFrom() {
  return {Loops<Source, ToSmall<F16>>(), Loops<Source, ToSmall<BF16>>(), Loops<Source, ToFloat>()};
}

const Normalizations* AllNormalizations() {
  static constexpr Normalizations kNormalizations = {
      LoopsFrom<FromInteger<uint8_t>>(), LoopsFrom<FromInteger<int16_t>>(),
      LoopsFrom<FromSmall<F16>>(), LoopsFrom<FromSmall<BF16>>(), LoopsFrom<FromFloat>()};
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

const Normalizations::From* LoopsOf(const Normalizations& all, DType from) {
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

RepeatedFactors::RepeatedFactors(const ChannelFactors& factors, int64_t count) : channels(count) {
  for (int64_t i = 0; i < channels + kVectorMax; ++i) {
    scale[static_cast<size_t>(i)] = factors.scale[static_cast<size_t>(i % channels)];
    bias[static_cast<size_t>(i)] = factors.bias[static_cast<size_t>(i % channels)];
  }
}

const NormalizeLoops* FindNormalize(DType from, DType to) {
  const Normalizations::From* loops = LoopsOf(*HWY_DYNAMIC_DISPATCH(AllNormalizations)(), from);
  if (loops == nullptr) return nullptr;
  switch (to) {
    case DType::kF16:
      return &loops->to_f16;
    case DType::kBF16:
      return &loops->to_bf16;
    case DType::kF32:
      return &loops->to_f32;
    default:
      return nullptr;
  }
}

}  // namespace sluice
#endif  // HWY_ONCE
