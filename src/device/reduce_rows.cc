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

#include "absl/types/span.h"
#include "device/prefetcher.h"
#include "device/small_float.inc"

#ifndef SLUICE_SRC_DEVICE_REDUCE_ROWS_CC_ONCE_
#define SLUICE_SRC_DEVICE_REDUCE_ROWS_CC_ONCE_
#include <bit>
#include <limits>
#include <type_traits>

#include "device/reduce_rows.h"
#include "sluice/layout.h"
#include "sluice/tensor.h"
#include "tensor/check.h"

namespace sluice {
namespace {

// Asked for at a time, a page ahead: hardware does not look beyond a page.
constexpr int64_t kSegmentBytes = 256;
constexpr int64_t kAheadBytes = 4 << 10;
// A unit that is streamed fits.
static_assert(2 * kCacheLineBytes <= kSegmentBytes);

void Prefetch(absl::Span<const std::byte* const> sources, int64_t at, int64_t bytes) {
  const int64_t begin = at + kAheadBytes;
  const int64_t end = std::min(begin + kSegmentBytes, bytes);
  for (const std::byte* const source : sources) {
    for (int64_t line = begin; line < end; line += kCacheLineBytes) {
      __builtin_prefetch(source + line);
    }
  }
}

template <typename T>
T LoadAs(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

template <typename T>
void DivideIntegers(std::byte* dst, int64_t elements, int64_t divisor) {
  using Wide = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
  for (std::byte* at = dst; at != dst + elements * static_cast<int64_t>(sizeof(T));
       at += sizeof(T)) {
    const T value = static_cast<T>(static_cast<Wide>(LoadAs<T>(at)) / static_cast<Wide>(divisor));
    std::memcpy(at, &value, sizeof(T));
  }
}

// Vectors of some integers have no product everywhere, and the compiler knows how to do without.
template <typename T>
void MultiplyIntegers(absl::Span<const std::byte* const> sources, std::byte* dst, int64_t begin,
                      int64_t end, int64_t /*divisor*/) {
  constexpr auto kBytes = static_cast<int64_t>(sizeof(T));
  for (int64_t at = begin * kBytes; at != end * kBytes; at += kBytes) {
    uint64_t product = 1;
    for (const std::byte* const source : sources) {
      product *= static_cast<uint64_t>(LoadAs<T>(source + at));
    }
    const T value = static_cast<T>(product);
    std::memcpy(dst + at, &value, sizeof(T));
  }
}

// The folds of one type on one instruction set.
struct Folds {
  struct Ways {
    FoldRows rows;
    FoldRows stream;  // or null
  };
  Ways sum;
  Ways max;
  Ways min;
  Ways product;
  DivideRow divide;  // null: folds divide by themselves
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

// A NaN stays one in sums and products, step by step. Its lower half is zero, as that of widened
// codes is, so rounding keeps it. So they are made the one NaN at the end.
struct Sum {
  static constexpr bool kKeepsNaNs = true;
  template <class D, class V>
  static HWY_INLINE V Apply(D /*d*/, V left, V right) {
    return hn::Add(left, right);
  }
};

// Equal values, such as zeros of two signs, keep what is in left; so does a NaN there.
struct Larger {
  static constexpr bool kKeepsNaNs = false;
  template <class D, class V>
  static HWY_INLINE V Apply(D d, V left, V right) {
    const V larger = hn::IfThenElse(hn::Gt(right, left), right, left);
    return WithOneNaN(d, right, WithOneNaN(d, larger, larger));
  }
};

struct Smaller {
  static constexpr bool kKeepsNaNs = false;
  template <class D, class V>
  static HWY_INLINE V Apply(D d, V left, V right) {
    const V smaller = hn::IfThenElse(hn::Lt(right, left), right, left);
    return WithOneNaN(d, right, WithOneNaN(d, smaller, smaller));
  }
};

struct Product {
  static constexpr bool kKeepsNaNs = true;
  template <class D, class V>
  static HWY_INLINE V Apply(D /*d*/, V left, V right) {
    return hn::Mul(left, right);
  }
};

// How elements become vectors, two at a time, and vectors elements: types that processors compute
// in. A unit of elements is what two vectors hold.
template <typename T>
struct Whole {
  using Element = T;
  using Tag = hn::ScalableTag<T>;
  using V = hn::Vec<Tag>;

  static HWY_INLINE void Load(const T* src, V& first, V& second) {
    first = hn::LoadU(Tag(), src);
    second = hn::LoadU(Tag(), src + hn::Lanes(Tag()));
  }
  // A result of a step, as it would be stored and loaded.
  static HWY_INLINE V Rounded(V value) { return value; }
  static HWY_INLINE void Store(V first, V second, T* dst) {
    hn::StoreU(first, Tag(), dst);
    hn::StoreU(second, Tag(), dst + hn::Lanes(Tag()));
  }
  // To a whole vector's alignment.
  static HWY_INLINE void Stream(V first, V second, T* dst) {
    hn::Stream(first, Tag(), dst);
    hn::Stream(second, Tag(), dst + hn::Lanes(Tag()));
  }
  static constexpr size_t kStreamBytes = hn::MaxLanes(Tag()) * sizeof(T);
};

// The others are computed in f32.
template <class Format>
struct Small {
  using Element = typename Format::Code;
  using Tag = Floats;
  using V = FloatVec;
  using Narrow = Narrowed<Format>;
  using CodeTag = typename Narrow::Tag;

  static HWY_INLINE void Load(const Element* src, V& first, V& second) {
    first = Widened<Format>::Load(src);
    second = Widened<Format>::Load(src + hn::Lanes(Tag()));
  }
  static HWY_INLINE V Rounded(V value) { return Widened<Format>::Of(Narrow::Codes(value)); }
  static HWY_INLINE void Store(V first, V second, Element* dst) {
    Narrow::Store(first, dst);
    Narrow::Store(second, dst + hn::Lanes(Tag()));
  }
  static HWY_INLINE void Stream(V first, V second, Element* dst) {
    hn::Stream(Narrow::Codes(first), CodeTag(), dst);
    hn::Stream(Narrow::Codes(second), CodeTag(), dst + hn::Lanes(Tag()));
  }
  static constexpr size_t kStreamBytes = hn::MaxLanes(Tag()) * sizeof(Element);
};

#if HWY_TARGET == HWY_SCALAR
using UpperHalves = Small<BF16>;
#else
// The upper halves of f32, two to a word. One vector has the even ones, and the other the odd ones.
struct UpperHalves {
  using Element = BF16::Code;
  using Tag = Floats;
  using V = FloatVec;
  using WordVec = hn::Vec<Words>;
  static_assert(std::endian::native == std::endian::little);

  static HWY_INLINE void Load(const Element* src, V& even, V& odd) {
    const hn::Repartition<uint8_t, Words> bytes;
    const auto words =
        hn::BitCast(Words(), hn::LoadU(bytes, reinterpret_cast<const uint8_t*>(src)));
    even = hn::BitCast(Floats(), hn::ShiftLeft<16>(words));
    odd = hn::BitCast(Floats(), Upper(words));
  }
  static HWY_INLINE V Rounded(V value) { return hn::BitCast(Floats(), Upper(Near(value))); }
  static HWY_INLINE void Store(V even, V odd, Element* dst) {
    const hn::Repartition<uint8_t, Words> bytes;
    hn::StoreU(hn::BitCast(bytes, Both(even, odd)), bytes, reinterpret_cast<uint8_t*>(dst));
  }
  static HWY_INLINE void Stream(V even, V odd, Element* dst) {
    const hn::Repartition<uint8_t, Words> bytes;
    hn::Stream(hn::BitCast(bytes, Both(even, odd)), bytes, reinterpret_cast<uint8_t*>(dst));
  }
  static constexpr size_t kStreamBytes = hn::MaxLanes(Tag()) * sizeof(float);

 private:
  static HWY_INLINE WordVec Upper(WordVec words) {
    return hn::And(words, hn::Set(Words(), 0xFFFF0000u));
  }
  // The upper half of the result is the nearest one, to even. A NaN has no lower half.
  static HWY_INLINE WordVec Near(V value) {
    const Words du;
    const auto bits = hn::BitCast(du, value);
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1u));
    return hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7FFFu)));
  }
  static HWY_INLINE WordVec Both(V even, V odd) {
    return hn::Or(hn::ShiftRight<16>(Near(even)), Upper(Near(odd)));
  }
};
#endif

// One step of two vectors.
template <class Access, class Operation>
HWY_INLINE void Step(const std::byte* source, int64_t at, typename Access::V& first,
                     typename Access::V& second) {
  const typename Access::Tag d;
  typename Access::V more;
  typename Access::V and_more;
  Access::Load(reinterpret_cast<const typename Access::Element*>(source) + at, more, and_more);
  first = Operation::Apply(d, first, more);
  second = Operation::Apply(d, second, and_more);
}

template <class Access>
HWY_INLINE void DivideBoth(int64_t divisor, typename Access::V& first, typename Access::V& second) {
  const typename Access::Tag d;
  if constexpr (std::is_floating_point_v<hn::TFromD<typename Access::Tag>>) {
    const auto by = hn::Set(d, static_cast<hn::TFromD<typename Access::Tag>>(divisor));
    first = hn::Div(Access::Rounded(first), by);
    second = hn::Div(Access::Rounded(second), by);
  }
}

// Folds a unit of elements from number `at` on, in registers from the first source to the last.
template <class Access, class Operation>
HWY_INLINE void FoldUnit(absl::Span<const std::byte* const> sources, int64_t at, int64_t divisor,
                         typename Access::V& first, typename Access::V& second) {
  Access::Load(reinterpret_cast<const typename Access::Element*>(sources[0]) + at, first, second);
  Step<Access, Operation>(sources[1], at, first, second);
  for (size_t i = 2; i < sources.size(); ++i) {
    first = Access::Rounded(first);
    second = Access::Rounded(second);
    Step<Access, Operation>(sources[i], at, first, second);
  }
  if (divisor > 1) DivideBoth<Access>(divisor, first, second);
  if (Operation::kKeepsNaNs || divisor > 1) {
    const typename Access::Tag d;
    first = WithOneNaN(d, first, first);
    second = WithOneNaN(d, second, second);
  }
}

// Less than a unit.
template <class Access, class Operation>
void FoldFew(absl::Span<const std::byte* const> sources, int64_t at, std::byte* dst,
             int64_t elements, int64_t divisor) {
  using T = typename Access::Element;
  constexpr size_t kElements = 2 * hn::MaxLanes(typename Access::Tag());
  const size_t bytes = static_cast<size_t>(elements) * sizeof(T);
  HWY_ALIGN T result[kElements] = {};
  HWY_ALIGN T next[kElements] = {};
  std::memcpy(result, sources[0] + at * static_cast<int64_t>(sizeof(T)), bytes);
  const std::byte* const both[] = {reinterpret_cast<const std::byte*>(result),
                                   reinterpret_cast<const std::byte*>(next)};
  typename Access::V first;
  typename Access::V second;
  for (size_t i = 1; i < sources.size(); ++i) {
    std::memcpy(next, sources[i] + at * static_cast<int64_t>(sizeof(T)), bytes);
    FoldUnit<Access, Operation>(both, 0, i + 1 == sources.size() ? divisor : 1, first, second);
    Access::Store(first, second, result);
  }
  std::memcpy(dst + at * static_cast<int64_t>(sizeof(T)), result, bytes);
}

template <class Access, class Operation>
void Fold(absl::Span<const std::byte* const> sources, std::byte* dst, int64_t begin, int64_t end,
          int64_t divisor) {
  using T = typename Access::Element;
  const auto unit = static_cast<int64_t>(2 * hn::Lanes(typename Access::Tag()));
  typename Access::V first;
  typename Access::V second;
  for (; begin + unit <= end; begin += unit) {
    FoldUnit<Access, Operation>(sources, begin, divisor, first, second);
    Access::Store(first, second, reinterpret_cast<T*>(dst) + begin);
  }
  if (begin < end) FoldFew<Access, Operation>(sources, begin, dst, end - begin, divisor);
}

template <class Access, class Operation>
void StreamFold(absl::Span<const std::byte* const> sources, std::byte* dst, int64_t begin,
                int64_t end, int64_t divisor) {
  using T = typename Access::Element;
  constexpr auto kBytes = static_cast<int64_t>(sizeof(T));
  const auto to_line =
      static_cast<int64_t>(-reinterpret_cast<uintptr_t>(dst + begin * kBytes) % kCacheLineBytes);
  // No vector may be streamed if no element begins a line.
  if (to_line % kBytes != 0) return Fold<Access, Operation>(sources, dst, begin, end, divisor);
  int64_t at = std::min(end, begin + to_line / kBytes);
  Fold<Access, Operation>(sources, dst, begin, at, divisor);
  const auto unit = static_cast<int64_t>(2 * hn::Lanes(typename Access::Tag()));
  typename Access::V first;
  typename Access::V second;
  while (at + unit <= end) {
    const int64_t segment_end = std::min(at + kSegmentBytes / kBytes, end);
    Prefetch(sources, at * kBytes, end * kBytes);
    for (; at + unit <= segment_end; at += unit) {
      FoldUnit<Access, Operation>(sources, at, divisor, first, second);
      Access::Stream(first, second, reinterpret_cast<T*>(dst) + at);
    }
  }
  Fold<Access, Operation>(sources, dst, at, end, divisor);
}

// Highway may write 16 bytes whatever a vector's length, and a line holds whole vectors.
template <class Access, class Operation>
constexpr Folds::Ways WaysOf() {
  constexpr size_t kBytes = Access::kStreamBytes;
  if constexpr (kBytes < HWY_STREAM_MULTIPLE || kBytes > kCacheLineBytes) {
    return {&Fold<Access, Operation>, nullptr};
  } else {
    return {&Fold<Access, Operation>, &StreamFold<Access, Operation>};
  }
}

template <class Access>
constexpr Folds FloatFolds() {
  return {WaysOf<Access, Sum>(), WaysOf<Access, Larger>(), WaysOf<Access, Smaller>(),
          WaysOf<Access, Product>(), nullptr};
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
      FloatFolds<UpperHalves>(),   FloatFolds<Small<F8E4M3>>(), FloatFolds<Small<F8E5M2>>(),
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

FoldRows FindFold(DType dtype, ReduceOp op) { return WaysOf(dtype, op).rows; }

FoldRows FindStreamingFold(DType dtype, ReduceOp op) { return WaysOf(dtype, op).stream; }

DivideRow FindDivide(DType dtype) {
  const Folds* const folds = FoldsOf(*HWY_DYNAMIC_DISPATCH(AllReductions)(), dtype);
  SLUICE_CHECK(folds != nullptr, "no division of this type");
  return folds->divide;
}

}  // namespace sluice
#endif  // HWY_ONCE
