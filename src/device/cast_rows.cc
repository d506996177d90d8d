// Eleven steps that widen to f32 or narrow from it, compiled for several instruction sets, and the
// casts made of one or two of them.
//
// One rounding only: f64 goes to types of 8 and 16 bits through an f32 that is rounded to odd. Such
// an f32 keeps what the second rounding has to know.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cast_rows.cc"
#include <hwy/foreach_target.h>
// Must come after foreach_target.h.
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "device/small_float.inc"

#ifndef SLUICE_SRC_DEVICE_CAST_ROWS_CC_ONCE_
#define SLUICE_SRC_DEVICE_CAST_ROWS_CC_ONCE_
#include <algorithm>
#include <utility>

#include "device/cast_rows.h"
#include "device/copy_rows.h"
#include "device/prefetcher.h"
#include "sluice/tensor.h"
#include "tensor/cast.h"
#include "tensor/check.h"

namespace sluice {
namespace {

using RowStep = void (*)(const std::byte* src, std::byte* dst, int64_t elements);
using RowStream = void (*)(const std::byte* src, std::byte* dst, const CopyAxis& axis,
                           int64_t piece_elements);

// The steps of one instruction set.
struct CastSteps {
  struct Step {
    RowStep row;
    RowStream stream;  // with streaming stores; null where the vectors are too short for these
  };
  struct Small {
    Step widen;   // to f32, exact
    Step narrow;  // from f32, rounds to nearest even
  };
  Small f16;
  Small bf16;
  Small f8e4m3;
  Small f8e5m2;
  Step f32_to_f64;
  Step f64_to_f32;      // rounds to nearest even
  Step f64_to_odd_f32;  // where inexact, the neighbour whose last bit is set
};

}  // namespace
}  // namespace sluice
#endif  // SLUICE_SRC_DEVICE_CAST_ROWS_CC_ONCE_

HWY_BEFORE_NAMESPACE();
namespace sluice {
namespace {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Doubles = hn::ScalableTag<double>;

// Each takes a vector's worth of elements of `From` by `Tag`, and gives one of `To` by `ToTag`.
template <class Format>
struct Widen {
  using From = typename Format::Code;
  using To = float;
  using Tag = Floats;
  using ToTag = Floats;

  static HWY_INLINE FloatVec Apply(const From* src) {
    const auto value = Widened<Format>::Load(src);
    const auto quiet = hn::BitCast(Floats(), hn::Set(Words(), kF32Quiet));
    return hn::IfThenElse(hn::IsNaN(value), hn::Or(value, quiet), value);
  }
};

template <class Format>
struct Narrow {
  using From = float;
  using To = typename Format::Code;
  using Tag = Floats;
  using ToTag = typename Narrowed<Format>::Tag;

  static HWY_INLINE hn::Vec<ToTag> Apply(const float* src) {
    return Narrowed<Format>::Codes(hn::LoadU(Floats(), src));
  }
};

using HalfFloats = hn::Rebind<float, Doubles>;
using HalfWords = hn::RebindToUnsigned<HalfFloats>;

// The instruction, not Highway's DemoteTo where that saturates what is too large.
HWY_INLINE hn::Vec<HalfFloats> NearestFloats(const double* src) {
#if HWY_TARGET == HWY_EMU128 || HWY_TARGET == HWY_SCALAR
  HWY_ALIGN double exact[hn::MaxLanes(Doubles())];
  HWY_ALIGN float nearest[hn::MaxLanes(HalfFloats())];
  std::memcpy(exact, src, sizeof(exact));
  for (size_t i = 0; i < hn::Lanes(Doubles()); ++i) nearest[i] = static_cast<float>(exact[i]);
  return hn::Load(HalfFloats(), nearest);
#else
  return hn::DemoteTo(HalfFloats(), hn::LoadU(Doubles(), src));
#endif
}

struct DoubleToFloat {
  using From = double;
  using To = float;
  using Tag = Doubles;
  using ToTag = HalfFloats;

  static HWY_INLINE hn::Vec<HalfFloats> Apply(const double* src) { return NearestFloats(src); }
};

// Rounded to nearest first. If the result is inexact and even, takes its odd neighbour on the other
// side of the exact value. The neighbour of infinity is the largest number.
struct DoubleToOddFloat {
  using From = double;
  using To = float;
  using Tag = Doubles;
  using ToTag = HalfFloats;

  static HWY_INLINE hn::Vec<HalfFloats> Apply(const double* src) {
    const Doubles dd;
    const HalfWords dw;
    const hn::RebindToUnsigned<Doubles> dl;
    const auto nearest = NearestFloats(src);
    const auto exact = hn::Abs(hn::LoadU(dd, src));
    const auto rounded = hn::Abs(hn::PromoteTo(dd, nearest));
    const auto up = hn::BitCast(dl, hn::VecFromMask(dd, hn::Gt(rounded, exact)));
    const auto down = hn::BitCast(dl, hn::VecFromMask(dd, hn::Lt(rounded, exact)));
    const auto step = hn::TruncateTo(dw, hn::Sub(up, down));  // a mask that is set counts -1
    const auto bits = hn::BitCast(dw, nearest);
    const auto one = hn::Set(dw, 1u);
    const auto even = hn::Sub(hn::And(bits, one), one);
    return hn::BitCast(HalfFloats(), hn::Add(bits, hn::And(step, even)));
  }
};

struct FloatToDouble {
  using From = float;
  using To = double;
  using Tag = Doubles;
  using ToTag = Doubles;

  static HWY_INLINE hn::Vec<Doubles> Apply(const float* src) {
    return hn::PromoteTo(Doubles(), hn::LoadU(HalfFloats(), src));
  }
};

template <class Operation>
HWY_INLINE void Store(const typename Operation::From* src, typename Operation::To* dst) {
  hn::StoreU(Operation::Apply(src), typename Operation::ToTag(), dst);
}

// Carries a step through a row. The last vector overlaps the one before it.
template <class Operation>
void Row(const std::byte* src, std::byte* dst, int64_t elements) {
  using From = typename Operation::From;
  using To = typename Operation::To;
  const typename Operation::Tag d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto* from = reinterpret_cast<const From*>(src);
  auto* to = reinterpret_cast<To*>(dst);
  if (elements <= 0) return;
  if (elements < lanes) {
    HWY_ALIGN From few[hn::MaxLanes(d)] = {};
    HWY_ALIGN To cast[hn::MaxLanes(d)];
    std::memcpy(few, src, static_cast<size_t>(elements) * sizeof(From));
    Store<Operation>(few, cast);
    std::memcpy(dst, cast, static_cast<size_t>(elements) * sizeof(To));
    return;
  }
  for (int64_t i = 0; i + lanes <= elements; i += lanes) Store<Operation>(from + i, to + i);
  if (elements % lanes != 0) Store<Operation>(from + elements - lanes, to + elements - lanes);
}

// Elements between two calls of the prefetcher, which cost as much as a few lines.
constexpr int64_t kStreamSegment = 128;

// The same with streaming stores for whole lines of the destination.
template <class Operation>
HWY_INLINE void StreamRow(const std::byte* src, std::byte* dst, int64_t elements,
                          Prefetcher* prefetcher) {
  using From = typename Operation::From;
  using To = typename Operation::To;
  constexpr auto kFromBytes = static_cast<int64_t>(sizeof(From));
  constexpr auto kToBytes = static_cast<int64_t>(sizeof(To));
  constexpr int64_t kLine = kCacheLineBytes / kToBytes;
  const auto lanes = static_cast<int64_t>(hn::Lanes(typename Operation::Tag()));
  const auto to_line = static_cast<int64_t>(-reinterpret_cast<uintptr_t>(dst) % kCacheLineBytes);
  if (to_line % kToBytes != 0) return Row<Operation>(src, dst, elements);  // no element begins one
  int64_t at = std::min(elements, to_line / kToBytes);
  Row<Operation>(src, dst, at);
  for (int64_t segment = 0; segment < elements; segment += kStreamSegment) {
    prefetcher->Next();
    const int64_t end = std::min(segment + kStreamSegment, elements);
    for (; at + kLine <= end; at += kLine) {
      const auto* from = reinterpret_cast<const From*>(src + at * kFromBytes);
      auto* to = reinterpret_cast<To*>(dst + at * kToBytes);
      for (int64_t i = 0; i < kLine; i += lanes) {
        hn::Stream(Operation::Apply(from + i), typename Operation::ToTag(), to + i);
      }
    }
  }
  Row<Operation>(src + at * kFromBytes, dst + at * kToBytes, elements - at);
}

template <class Operation>
void Stream(const std::byte* src, std::byte* dst, const CopyAxis& axis, int64_t piece_elements) {
  constexpr auto kFromBytes = static_cast<int64_t>(sizeof(typename Operation::From));
  Prefetcher prefetcher(src, axis.count, axis.src_stride, piece_elements * kFromBytes,
                        kStreamSegment * kFromBytes);
  for (int64_t i = 0; i < axis.count; ++i) {
    StreamRow<Operation>(src + i * axis.src_stride, dst + i * axis.dst_stride, piece_elements,
                         &prefetcher);
  }
}

// Highway may write 16 bytes whatever a vector's length, and a line holds whole vectors.
template <class Operation>
constexpr RowStream StreamOf() {
  constexpr size_t kBytes =
      hn::MaxLanes(typename Operation::ToTag()) * sizeof(typename Operation::To);
  if constexpr (kBytes < HWY_STREAM_MULTIPLE || kBytes > kCacheLineBytes) {
    return nullptr;
  } else {
    return &Stream<Operation>;
  }
}

template <class Operation>
constexpr CastSteps::Step StepOf() {
  return {&Row<Operation>, StreamOf<Operation>()};
}

template <class Format>
constexpr CastSteps::Small SmallSteps() {
  return {StepOf<Widen<Format>>(), StepOf<Narrow<Format>>()};
}

const CastSteps* Steps() {
  static constexpr CastSteps kSteps = {SmallSteps<F16>(),         SmallSteps<BF16>(),
                                       SmallSteps<F8E4M3>(),      SmallSteps<F8E5M2>(),
                                       StepOf<FloatToDouble>(),   StepOf<DoubleToFloat>(),
                                       StepOf<DoubleToOddFloat>()};
  return &kSteps;
}

}  // namespace HWY_NAMESPACE
}  // namespace
}  // namespace sluice
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice {
namespace {

// Elements that are cast by two steps at a time: what lies between them stays in the first cache.
constexpr int64_t kPieceElements = 1024;

HWY_EXPORT(Steps);

const CastSteps::Small& SmallStepsOf(const CastSteps& steps, DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return steps.f16;
    case DType::kBF16:
      return steps.bf16;
    case DType::kF8E4M3:
      return steps.f8e4m3;
    default:
      return steps.f8e5m2;
  }
}

}  // namespace

RowCast::RowCast(DType from, DType to) : src_bytes_(DTypeBytes(from)), dst_bytes_(DTypeBytes(to)) {
  SLUICE_CHECK(from != to && CastExists(from, to), "no such cast of rows");
  const CastSteps& steps = *HWY_DYNAMIC_DISPATCH(Steps)();
  CastSteps::Step first = {};
  CastSteps::Step second = {};
  if (from == DType::kF64) {
    first = to == DType::kF32 ? steps.f64_to_f32 : steps.f64_to_odd_f32;
  } else if (from != DType::kF32) {
    first = SmallStepsOf(steps, from).widen;
  }
  if (to != DType::kF32) {
    second = to == DType::kF64 ? steps.f32_to_f64 : SmallStepsOf(steps, to).narrow;
  }
  if (first.row == nullptr) std::swap(first, second);
  first_ = first.row;
  second_ = second.row;
  if (second_ == nullptr) stream_ = first.stream;
}

void RowCast::Cast(const std::byte* src, std::byte* dst, int64_t elements) const {
  if (second_ == nullptr) return first_(src, dst, elements);
  alignas(64) std::byte between[kPieceElements * sizeof(float)];
  for (int64_t i = 0; i < elements; i += kPieceElements) {
    const int64_t piece = std::min(kPieceElements, elements - i);
    first_(src + i * src_bytes_, between, piece);
    second_(between, dst + i * dst_bytes_, piece);
  }
}

}  // namespace sluice
#endif  // HWY_ONCE
