// One loop per dtype and operation, and the ranks of each group.
#include "workload/reduce.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

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

SourceGroups::SourceGroups(const Layout& layout)
    : ranks_(layout.mesh.ranks().begin(), layout.mesh.ranks().end()) {
  std::vector<Dimension> shard;
  auto stride = static_cast<int64_t>(ranks_.size());
  for (size_t m = 0; m < layout.placements.size(); ++m) {
    const int64_t size = layout.mesh.sizes()[m];
    stride /= size;
    switch (layout.placements[m].kind) {
      case Placement::Kind::kPartial:
        AddPartial({size, stride}, layout.placements[m].op);
        break;
      case Placement::Kind::kReplicate:
        replicate_.push_back({size, stride});
        break;
      case Placement::Kind::kShard:
      case Placement::Kind::kStridedShard:
        shard.push_back({size, stride});
        break;
    }
  }
  partial_offsets_ = Offsets(partial_, true);
  replicate_offsets_ = Offsets(replicate_, false);
  bases_ = Offsets(shard, false);
}

void SourceGroups::AddPartial(const Dimension& dimension, ReduceOp op) {
  if (dimension.size == 1) return;
  const bool in_one = op == ReduceOp::kSum || op == ReduceOp::kMax || op == ReduceOp::kMin;
  if (in_one && !steps_.empty() && steps_.back().op == op) {
    steps_.back().ranks *= dimension.size;
  } else {
    steps_.push_back({op, dimension.size});
    last_step_ = static_cast<ptrdiff_t>(partial_.size());
  }
  partial_.insert(partial_.begin() + last_step_, dimension);
}

std::vector<int64_t> SourceGroups::Offsets(const std::vector<Dimension>& dimensions,
                                           bool first_fastest) {
  std::vector<int64_t> offsets = {0};
  const auto extend = [&](const Dimension& dimension) {
    std::vector<int64_t> longer;
    for (int64_t c = 0; c < dimension.size; ++c) {
      for (const int64_t offset : offsets) longer.push_back(offset + c * dimension.stride);
    }
    offsets = std::move(longer);
  };
  if (first_fastest) {
    std::for_each(dimensions.begin(), dimensions.end(), extend);
  } else {
    std::for_each(dimensions.rbegin(), dimensions.rend(), extend);
  }
  return offsets;
}

std::vector<int> SourceGroups::Holders(int64_t base, size_t index) const {
  std::vector<int> holders;
  for (const int64_t offset : replicate_offsets_) {
    holders.push_back(ranks_[static_cast<size_t>(base + partial_offsets_[index] + offset)]);
  }
  return holders;
}

int SourceGroups::LowestHolder(int64_t base, size_t index) const {
  const std::vector<int> holders = Holders(base, index);
  return *std::min_element(holders.begin(), holders.end());
}

int64_t SourceGroups::BaseOf(int64_t position) const {
  int64_t base = position;
  for (const Dimension& d : partial_) base -= PartAlong(d, position) * d.stride;
  for (const Dimension& d : replicate_) base -= PartAlong(d, position) * d.stride;
  return base;
}

size_t SourceGroups::ContributionOf(int64_t position) const {
  int64_t index = 0;
  int64_t step = 1;
  for (const Dimension& d : partial_) {
    index += PartAlong(d, position) * step;
    step *= d.size;
  }
  return static_cast<size_t>(index);
}

}  // namespace sluice::bench
