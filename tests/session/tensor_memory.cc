// Strided test memory with guards.
#include "session/tensor_memory.h"

#include <cstring>

#include "oracle/brute_layout.h"

namespace sluice::session_test {
namespace {

constexpr size_t kGuardBytes = 64;

// Distinct for distinct arguments, as far as tests can tell.
uint64_t Value(uint64_t tensor, uint64_t round, int64_t flat) {
  uint64_t z = (tensor << 48) ^ (round << 40) ^ static_cast<uint64_t>(flat);
  z = (z ^ (z >> 31)) * 0x7fb5d329728ea185u;
  z = (z ^ (z >> 27)) * 0x81dadef4bc2dd44du;
  return z ^ (z >> 33);
}

std::byte PoisonByte(uint64_t round) { return static_cast<std::byte>(0xa5 + round); }

// Element offsets of all positions, row-major.
std::vector<int64_t> Offsets(absl::Span<const int64_t> shape, absl::Span<const int64_t> strides) {
  std::vector<int64_t> offsets = {0};
  for (size_t d = 0; d < shape.size(); ++d) {
    std::vector<int64_t> next;
    next.reserve(offsets.size() * static_cast<size_t>(shape[d]));
    for (int64_t offset : offsets) {
      for (int64_t p = 0; p < shape[d]; ++p) next.push_back(offset + p * strides[d]);
    }
    offsets = std::move(next);
  }
  return offsets;
}

}  // namespace

TensorMemory::TensorMemory(const Layout& layout, absl::Span<const int64_t> shape, DType dtype,
                           int rank, uint64_t tensor, ViewStyle style)
    : tensor_(tensor), element_bytes_(static_cast<size_t>(DTypeBytes(dtype))) {
  const auto lists = oracle::OwnedLists(layout, shape, rank);
  if (lists) flat_ = oracle::FlatIndices(*lists, shape);
  if (flat_.empty()) return;  // any view will do: this one has no data

  const size_t dims = shape.size();
  std::vector<int64_t> local, strides(dims);
  for (const oracle::IndexList& list : *lists) local.push_back(static_cast<int64_t>(list.size()));
  const int64_t gap = style == ViewStyle::kSlice ? 2 : 0;
  int64_t stride = style == ViewStyle::kSpaced ? 3 : 1;
  int64_t origin = 0;
  for (size_t i = 0; i < dims; ++i) {
    const size_t d = style == ViewStyle::kTransposed ? i : dims - 1 - i;
    strides[d] = stride;
    origin += gap / 2 * stride;
    stride *= local[d] + gap;
  }
  const size_t guard = style == ViewStyle::kSpaced ? kGuardBytes + 1 : kGuardBytes;
  buffer_.resize(static_cast<size_t>(stride) * element_bytes_ + 2 * guard);
  for (int64_t offset : Offsets(local, strides)) {
    offset_.push_back(guard + static_cast<size_t>(origin + offset) * element_bytes_);
  }
  view_.data = buffer_.data() + guard;
  view_.byte_offset = origin * static_cast<int64_t>(element_bytes_);
  view_.shape = std::move(local);
  if (style != ViewStyle::kDense) view_.strides = std::move(strides);
  view_.dtype = dtype;
}

std::vector<std::byte> TensorMemory::Image(uint64_t round, bool with_values) const {
  std::vector<std::byte> image(buffer_.size(), PoisonByte(round));
  if (!with_values) return image;
  for (size_t i = 0; i < flat_.size(); ++i) {
    const uint64_t value = Value(tensor_, round, flat_[i]);
    std::memcpy(image.data() + offset_[i], &value, element_bytes_);
  }
  return image;
}

// Both write into the buffer that the view names, which must not move.
void TensorMemory::Fill(uint64_t round) {
  const std::vector<std::byte> image = Image(round, true);
  std::copy(image.begin(), image.end(), buffer_.begin());
}

void TensorMemory::Poison(uint64_t round) {
  std::fill(buffer_.begin(), buffer_.end(), PoisonByte(round));
}

}  // namespace sluice::session_test
