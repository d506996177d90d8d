// One loop per dtype and operation.
#include "workload/reduce.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "tensor/check.h"
#include "workload/element.h"

namespace sluice::bench {
namespace {

template <typename Wide, typename Combine>
Wide Wrapping(Wide a, Wide b, Combine combine) {
  if constexpr (std::is_integral_v<Wide>) {
    return static_cast<Wide>(combine(static_cast<uint64_t>(a), static_cast<uint64_t>(b)));
  } else {
    return combine(a, b);
  }
}

template <typename Codec, typename Combine>
void ForAll(int64_t count, const std::byte* in, std::byte* accumulated, Combine combine) {
  const auto* values = reinterpret_cast<const typename Codec::Unit*>(in);
  auto* sums = reinterpret_cast<typename Codec::Unit*>(accumulated);
  for (int64_t i = 0; i < count; ++i) {
    sums[i] = Codec::Store(combine(Codec::Load(sums[i]), Codec::Load(values[i])));
  }
}

template <typename Codec>
void Accumulate(ReduceOp op, int64_t count, const std::byte* in, std::byte* accumulated) {
  using Wide = typename Codec::Wide;
  const auto add = [](auto a, auto b) { return a + b; };
  const auto multiply = [](auto a, auto b) { return a * b; };
  switch (op) {
    case ReduceOp::kSum:
    case ReduceOp::kAvg:
      return ForAll<Codec>(count, in, accumulated,
                           [&](Wide a, Wide b) { return Wrapping(a, b, add); });
    case ReduceOp::kMax:
      return ForAll<Codec>(count, in, accumulated, [](Wide a, Wide b) { return a < b ? b : a; });
    case ReduceOp::kMin:
      return ForAll<Codec>(count, in, accumulated, [](Wide a, Wide b) { return b < a ? b : a; });
    case ReduceOp::kProduct:
      return ForAll<Codec>(count, in, accumulated,
                           [&](Wide a, Wide b) { return Wrapping(a, b, multiply); });
  }
}

template <typename Codec>
void Divide(int64_t divisor, int64_t count, std::byte* data) {
  auto* values = reinterpret_cast<typename Codec::Unit*>(data);
  const auto by = static_cast<typename Codec::Wide>(divisor);
  for (int64_t i = 0; i < count; ++i) values[i] = Codec::Store(Codec::Load(values[i]) / by);
}

template <typename Codec>
void Reduce(absl::Span<const ReduceStep> steps, int64_t count,
            absl::Span<std::byte* const> stretches) {
  size_t stride = 1;
  for (const ReduceStep& step : steps) {
    const auto ranks = static_cast<size_t>(step.ranks);
    for (size_t first = 0; first < stretches.size(); first += stride * ranks) {
      for (size_t k = 1; k < ranks; ++k) {
        Accumulate<Codec>(step.op, count, stretches[first + k * stride], stretches[first]);
      }
      if (step.op == ReduceOp::kAvg) Divide<Codec>(step.ranks, count, stretches[first]);
    }
    stride *= ranks;
  }
  SLUICE_CHECK(stride == stretches.size(), "one stretch for each contribution");
}

template <typename Src, typename Dst>
void Convert(const std::byte* src, int64_t count, std::byte* dst) {
  if constexpr (std::is_floating_point_v<typename Src::Wide> &&
                std::is_floating_point_v<typename Dst::Wide>) {
    const auto* in = reinterpret_cast<const typename Src::Unit*>(src);
    auto* out = reinterpret_cast<typename Dst::Unit*>(dst);
    for (int64_t i = 0; i < count; ++i) out[i] = Dst::Store(Src::Load(in[i]));
  } else {
    SLUICE_CHECK(false, "integers are not cast");
  }
}

bool IsFloat(DType dtype) {
  return WithCodec(
      dtype, [](auto codec) { return std::is_floating_point_v<typename decltype(codec)::Wide>; });
}

}  // namespace

void ReduceInPlace(absl::Span<const ReduceStep> steps, DType dtype, int64_t count,
                   absl::Span<std::byte* const> stretches) {
  WithCodec(dtype, [&](auto codec) { Reduce<decltype(codec)>(steps, count, stretches); });
}

bool CanConvert(DType src_dtype, DType dst_dtype) {
  return src_dtype == dst_dtype || (IsFloat(src_dtype) && IsFloat(dst_dtype));
}

void ConvertElements(DType src_dtype, const std::byte* src, int64_t count, DType dst_dtype,
                     std::byte* dst) {
  if (src_dtype == dst_dtype) {
    std::memcpy(dst, src, static_cast<size_t>(count * DTypeBytes(src_dtype)));
    return;
  }
  WithCodec(src_dtype, [&](auto in) {
    WithCodec(dst_dtype, [&](auto out) { Convert<decltype(in), decltype(out)>(src, count, dst); });
  });
}

}  // namespace sluice::bench
