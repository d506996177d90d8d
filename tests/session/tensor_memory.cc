// Strided test memory with guards. Sanitizers see its accesses of the buffer, which a session
// touches too, because they are calls of memcpy, memcmp and memset (sluice_plain_sources).
#include "session/tensor_memory.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "device/copy_flat.h"
#include "gtest/gtest.h"
#include "oracle/brute_layout.h"

namespace sluice::session_test {
namespace {

constexpr size_t kGuardBytes = 64;

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

TensorMemory::TensorMemory(const TensorTransfer& tensor, uint64_t number, Side side, int rank,
                           ViewStyle style, const Likeness& alike, const Box* box)
    : values_(tensor, number, alike), side_(side) {
  const DType dtype = side == Side::kSource ? tensor.src_dtype : tensor.dst_dtype;
  const std::vector<int64_t>& shape = tensor.shape;
  element_bytes_ = static_cast<size_t>(DTypeBytes(dtype));
  const auto lists =
      box != nullptr
          ? std::optional(oracle::ListsOf(*box))
          : oracle::OwnedLists(side == Side::kSource ? tensor.src : tensor.dst, shape, rank);
  if (lists) flat_ = oracle::FlatIndices(*lists, shape);
  if (lists && side == Side::kSource && box == nullptr) {
    contribution_ = values_.ContributionOf(rank);
  }
  if (flat_.empty()) return;  // any view will do: this one has no data

  std::vector<int64_t> local;
  for (const oracle::IndexList& list : *lists) local.push_back(static_cast<int64_t>(list.size()));
  Arrangement arrangement = Arrange(*lists, style, alike);
  const size_t guard = style == ViewStyle::kSpaced ? kGuardBytes + 1 : kGuardBytes;
  buffer_.resize(static_cast<size_t>(arrangement.extent) * element_bytes_ + 2 * guard);
  for (int64_t offset : Offsets(local, arrangement.strides)) {
    offset_.push_back(guard + static_cast<size_t>(arrangement.origin + offset) * element_bytes_);
  }
  view_.data = buffer_.data() + guard;
  view_.byte_offset = arrangement.origin * static_cast<int64_t>(element_bytes_);
  view_.shape = std::move(local);
  if (style != ViewStyle::kDense) view_.strides = std::move(arrangement.strides);
  view_.dtype = dtype;
}

TensorMemory::Arrangement TensorMemory::Arrange(const std::vector<oracle::IndexList>& lists,
                                                ViewStyle style, const Likeness& alike) {
  const size_t dims = lists.size();
  const auto extent = [&lists](size_t d) { return static_cast<int64_t>(lists[d].size()); };
  const int64_t gap = style == ViewStyle::kSlice ? 2 : 0;
  Arrangement made;
  made.strides.assign(dims, 0);
  std::vector<bool> placed(dims, false);
  int64_t stride = style == ViewStyle::kSpaced ? 3 : 1;
  if (style == ViewStyle::kAlike) {
    for (const size_t d : alike.repeated) placed[d] = true;
    // Places follow from indices only where those are consecutive.
    const auto whole = [&lists](size_t d) {
      return lists[d].back() - lists[d].front() + 1 == static_cast<int64_t>(lists[d].size());
    };
    const size_t slid = static_cast<size_t>(std::max(alike.slid, 0));
    if (alike.slid >= 0 && whole(slid) && whole(slid + 1)) {
      made.strides[slid] = made.strides[slid + 1] = stride;
      placed[slid] = placed[slid + 1] = true;
      stride *= extent(slid) + extent(slid + 1) - 1;
    }
  }
  if (style == ViewStyle::kInterleaved) {
    std::vector<size_t> wide;
    for (size_t d = 0; d < dims; ++d) {
      if (extent(d) > 1) wide.push_back(d);
    }
    if (wide.size() >= 2) {
      if (extent(wide[1]) > extent(wide[0])) std::swap(wide[0], wide[1]);
      // i * n + j * (n + 1) for j < n: no two are equal. The smaller n is, the less lies between.
      const int64_t n = extent(wide[1]);
      made.strides[wide[0]] = n;
      made.strides[wide[1]] = n + 1;
      placed[wide[0]] = placed[wide[1]] = true;
      stride = n * (extent(wide[0]) - 1) + (n + 1) * (n - 1) + 1;
    }
  }
  for (size_t i = 0; i < dims; ++i) {
    size_t d = dims - 1 - i;
    if (style == ViewStyle::kTransposed) d = i;
    if (style == ViewStyle::kRotated) d = (dims / 2 + i) % dims;
    if (placed[d]) continue;
    made.strides[d] = stride;
    made.origin += gap / 2 * stride;
    stride *= extent(d) + gap;
  }
  made.extent = stride;
  return made;
}

void TensorMemory::PutOn(std::shared_ptr<Device> device, const Accelerator& accelerator) {
  if (buffer_.empty()) return;
  auto memory = device->AllocateBuffer(buffer_.size()).value();
  const ptrdiff_t begin = static_cast<std::byte*>(view_.data) - buffer_.data();
  on_device_ = std::move(memory);
  device_ = std::move(device);
  view_.data = on_device_.data() + begin;
  view_.device = accelerator.kind();
  view_.device_ordinal = accelerator.ordinal();
}

const std::vector<std::byte>& TensorMemory::Fetched() const {
  if (device_ == nullptr) return buffer_;
  EXPECT_EQ(CopyFlat(device_.get(), on_device_.data(), device_->traits().buffers, buffer_.data(),
                     DeviceKind::kCpu, buffer_.size()),
            absl::OkStatus());
  return buffer_;
}

void TensorMemory::Bring() {
  if (device_ == nullptr) return;
  EXPECT_EQ(CopyFlat(device_.get(), buffer_.data(), DeviceKind::kCpu, on_device_.data(),
                     device_->traits().buffers, buffer_.size()),
            absl::OkStatus());
}

std::vector<std::byte> TensorMemory::Image(uint64_t round, bool with_values) const {
  std::vector<std::byte> image(buffer_.size(), PoisonByte(round));
  if (!with_values) return image;
  for (size_t i = 0; i < flat_.size(); ++i) {
    const uint64_t value = side_ == Side::kSource ? values_.Source(round, flat_[i], contribution_)
                                                  : values_.Target(round, flat_[i]);
    std::memcpy(image.data() + offset_[i], CodeBytes(value).data(), element_bytes_);
  }
  return image;
}

bool TensorMemory::Is(const std::vector<std::byte>& image) const {
  Fetched();
  return image.empty() || std::memcmp(buffer_.data(), image.data(), image.size()) == 0;
}

bool TensorMemory::Holds(uint64_t round) const { return Is(Image(round, true)); }

bool TensorMemory::IsPoisoned(uint64_t round) const { return Is(Image(round, false)); }

std::string TensorMemory::Difference(uint64_t round) const {
  const std::vector<std::byte> image = Image(round, true);
  const std::vector<std::byte> buffer = Fetched();
  for (size_t i = 0; i < flat_.size(); ++i) {
    const auto at = static_cast<ptrdiff_t>(offset_[i]);
    const auto bytes = static_cast<ptrdiff_t>(element_bytes_);
    if (std::equal(image.begin() + at, image.begin() + at + bytes, buffer.begin() + at)) continue;
    uint64_t is = 0, should_be = 0;
    const size_t shown = std::min(element_bytes_, sizeof(is));
    std::memcpy(&is, buffer.data() + at, shown);
    std::memcpy(&should_be, image.data() + at, shown);
    return absl::StrCat("element ", flat_[i], " is ", absl::Hex(is), " and should be ",
                        absl::Hex(should_be));
  }
  return "a byte outside the view has changed";
}

// Both write into the buffer that the view names, which must not move.
void TensorMemory::Fill(uint64_t round) {
  const std::vector<std::byte> image = Image(round, true);
  if (!image.empty()) std::memcpy(buffer_.data(), image.data(), image.size());
  Bring();
}

void TensorMemory::Poison(uint64_t round) {
  std::memset(buffer_.data(), std::to_integer<int>(PoisonByte(round)), buffer_.size());
  Bring();
}

}  // namespace sluice::session_test
