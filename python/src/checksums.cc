// Checksums of tensors that do not depend on how the tensors lie.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "session.h"
#include "values.h"

namespace sluice::python {
namespace {

// Mixes all bits of a number: the last steps of MurmurHash3 with the constants of SplitMix64
// (https://prng.di.unimi.it/splitmix64.c, public domain).
uint64_t Mix(uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9u;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

uint64_t HashOf(uint64_t index, const std::byte* element, int64_t bytes) {
  uint64_t hash = Mix(index + 0x9e3779b97f4a7c15u);
  for (int64_t done = 0; done < bytes; done += 8) {
    uint64_t word = 0;
    std::memcpy(&word, element + done, static_cast<size_t>(std::min<int64_t>(8, bytes - done)));
    hash = Mix(hash ^ word);
  }
  return hash;
}

// One dimension of a rank's part: where each local position lies in the whole tensor.
struct Axis {
  std::vector<int64_t> index = {};  // global, times the elements that one step passes over
  int64_t stride = 0;               // bytes
};

uint64_t SumOf(const std::vector<Axis>& axes, size_t depth, uint64_t index, const std::byte* at,
               int64_t bytes) {
  const Axis& axis = axes[depth];
  uint64_t sum = 0;
  for (size_t i = 0; i < axis.index.size(); ++i) {
    const uint64_t here = index + static_cast<uint64_t>(axis.index[i]);
    const std::byte* const element = at + static_cast<int64_t>(i) * axis.stride;
    sum += depth + 1 == axes.size() ? HashOf(here, element, bytes)
                                    : SumOf(axes, depth + 1, here, element, bytes);
  }
  return sum;
}

using Ranges = std::vector<std::vector<IndexRange>>;

absl::StatusOr<uint64_t> PartSum(const std::vector<int64_t>& shape, DType dtype,
                                 const Ranges& ranges, const TensorView& view) {
  if (view.device == DeviceKind::kCuda) {
    return absl::InvalidArgumentError("checksums are of host memory");
  }
  if (view.dtype != dtype) {
    return absl::InvalidArgumentError(absl::StrCat("the view is of ", DTypeName(view.dtype),
                                                   ", and the tensor of ", DTypeName(dtype)));
  }
  const int64_t bytes = DTypeBytes(dtype);
  const std::vector<int64_t> strides =
      view.strides.empty() ? DenseStrides(view.shape) : view.strides;
  std::vector<Axis> axes(shape.size());
  int64_t step = 1;
  bool empty = false;
  std::vector<int64_t> local(shape.size());
  for (size_t d = shape.size(); d > 0; --d) {
    Axis& axis = axes[d - 1];
    for (const IndexRange& range : ranges[d - 1]) {
      for (int64_t i = range.begin; i < range.end; ++i) axis.index.push_back(i * step);
    }
    local[d - 1] = static_cast<int64_t>(axis.index.size());
    empty = empty || axis.index.empty();
    step *= shape[d - 1];
  }
  if (empty) return 0;
  if (view.shape != local) {
    return absl::InvalidArgumentError("the view's shape is not that of the rank's part");
  }
  if (view.data == nullptr) return absl::InvalidArgumentError("the view has no data");
  for (size_t d = 0; d < shape.size(); ++d) axes[d].stride = strides[d] * bytes;
  return SumOf(axes, 0, 0, static_cast<const std::byte*>(view.data) + view.byte_offset, bytes);
}

absl::StatusOr<uint64_t> ChecksumOf(const std::vector<int64_t>& shape, DType dtype,
                                    const Layout& layout, int rank, const TensorView& view) {
  if (absl::Status status = ValidateLayout(layout, shape); !status.ok()) return status;
  if (!layout.boxes.empty()) {
    const absl::Span<const Box> boxes = layout.boxes.Of(rank);
    if (boxes.size() != view.boxes.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the rank has ", boxes.size(), " boxes and ", view.boxes.size(), " views"));
    }
    uint64_t sum = 0;
    for (size_t i = 0; i < boxes.size(); ++i) {
      Ranges ranges;
      for (size_t d = 0; d < boxes[i].shape.size(); ++d) {
        ranges.push_back({{boxes[i].offset[d], boxes[i].offset[d] + boxes[i].shape[d]}});
      }
      const absl::StatusOr<uint64_t> part = PartSum(shape, dtype, ranges, view.boxes[i]);
      if (!part.ok()) return part;
      sum += *part;
    }
    return sum;
  }
  for (const Placement& placement : layout.placements) {
    if (placement.kind == Placement::Kind::kPartial) {
      return absl::InvalidArgumentError("a tensor that is yet to be reduced has no checksum");
    }
  }
  const absl::StatusOr<Ranges> ranges = OwnedRanges(layout, shape, rank);
  if (!ranges.ok()) return ranges.status();
  if (ranges->size() != shape.size()) return 0;
  return PartSum(shape, dtype, *ranges, view);
}

}  // namespace

void BindChecksums(nb::module_& module) {
  module.def(
      "checksum",
      [](nb::handle shape, nb::handle dtype, const Layout& layout, int rank, nb::handle view) {
        const std::vector<int64_t> sizes = IntsOf(shape, "shape");
        const DType type = DTypeOf(dtype);
        TensorView memory;
        if (!view.is_none()) memory = ViewOf(view, "");
        if (!layout.boxes.empty() && memory.boxes.empty()) {
          TensorView boxes;
          boxes.boxes.push_back(std::move(memory));
          memory = std::move(boxes);
        }
        absl::StatusOr<uint64_t> sum = 0;
        {
          const ReleasedGil released;
          sum = ChecksumOf(sizes, type, layout, rank, memory);
        }
        return ValueOrRaise(std::move(sum));
      },
      nb::arg("shape"), nb::arg("dtype"), nb::arg("layout"), nb::arg("rank"), nb::arg("view"),
      "The sum, modulo 2**64, over this rank's elements of a hash of their place in the whole "
      "tensor and of their bytes. Summed over one copy of each element it does not depend on the "
      "layout. Host memory only.");
}

}  // namespace sluice::python
