// Random copies, with casts and without, biased to what has gaps, joins, wraps and ends in the
// middle of rows.
#include "device/reference_copy.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include "absl/types/span.h"
#include "device/float_oracle.h"

namespace sluice {
namespace {

// Most elements of a region: keeps thousands of cases quick.
constexpr int64_t kMaxElements = 2000;

int64_t Uniform(std::mt19937_64& random, int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(random);
}

bool Chance(std::mt19937_64& random, int percent) { return Uniform(random, 1, 100) <= percent; }

int64_t Extent(const std::vector<Stretch>& runs) {
  int64_t extent = 0;
  for (const Stretch& run : runs) extent += run.length;
  return extent;
}

// One more than the last position on a side.
int64_t Positions(const std::vector<Stretch>& runs, int64_t Stretch::*first) {
  int64_t positions = 0;
  for (const Stretch& run : runs) positions = std::max(positions, run.*first + run.length);
  return positions;
}

// Quick pseudo-random bytes (Knuth's 64-bit congruential generator).
void Fill(uint64_t state, std::vector<std::byte>* memory) {
  for (std::byte& byte : *memory) {
    state = state * 6364136223846793005 + 1442695040888963407;
    byte = static_cast<std::byte>(state >> 56);
  }
}

// Ascending runs of `extent` positions together, with gaps on either side or on none.
std::vector<Stretch> RandomRuns(std::mt19937_64& random, int64_t extent) {
  std::vector<Stretch> runs;
  const bool one = Chance(random, 50);
  Stretch next;
  if (Chance(random, 30)) next.src = Uniform(random, 0, 3);
  if (Chance(random, 30)) next.dst = Uniform(random, 0, 3);
  while (extent > 0) {
    next.length = one ? extent : Uniform(random, 1, extent);
    runs.push_back(next);
    extent -= next.length;
    next.src += next.length + (Chance(random, 40) ? Uniform(random, 1, 3) : 0);
    next.dst += next.length + (Chance(random, 40) ? Uniform(random, 1, 3) : 0);
  }
  return runs;
}

}  // namespace

RandomCopy::RandomCopy(uint64_t seed) {
  std::mt19937_64 random(seed);
  copy.dims = static_cast<int>(Uniform(random, 1, kMaxTensorDims));
  ChooseTypes(random);
  ChooseRuns(random);
  const int64_t src_bytes =
      ChooseStrides(random, &Stretch::src, true, DTypeBytes(copy.src_dtype), &copy.src_strides);
  const int64_t dst_bytes =
      ChooseStrides(random, &Stretch::dst, false, DTypeBytes(copy.dst_dtype), &copy.dst_strides);
  src_memory.resize(static_cast<size_t>(src_bytes + 2 * kGuardBytes));
  dst_memory.resize(static_cast<size_t>(dst_bytes + 2 * kGuardBytes));
  Fill(random(), &src_memory);
  Fill(random(), &dst_memory);
  copy.src = src_memory.data() + kGuardBytes;
  copy.dst = dst_memory.data() + kGuardBytes;
}

// Half of the copies cast.
void RandomCopy::ChooseTypes(std::mt19937_64& random) {
  if (Chance(random, 50)) {
    copy.src_dtype = copy.dst_dtype = static_cast<DType>(Uniform(random, 0, 9));
    return;
  }
  copy.src_dtype = kFloatTypes[static_cast<size_t>(Uniform(random, 0, 5))];
  copy.dst_dtype = kFloatTypes[static_cast<size_t>(Uniform(random, 0, 5))];
}

void RandomCopy::ChooseRuns(std::mt19937_64& random) {
  int64_t elements = 1;
  for (int d = 0; d < copy.dims; ++d) {
    const auto index = static_cast<size_t>(d);
    const int64_t most = std::max(int64_t{1}, kMaxElements / elements);
    const int64_t wanted = Chance(random, 20)   ? 1
                           : Chance(random, 20) ? Uniform(random, 1, 300)
                                                : Uniform(random, 1, 9);
    runs[index] = RandomRuns(random, std::min(wanted, most));
    copy.runs[index] = runs[index];
    elements *= Extent(runs[index]);
  }
  copy.begin = Chance(random, 40) ? 0 : Uniform(random, 0, elements);
  copy.end = Chance(random, 40) ? elements : Uniform(random, copy.begin, elements);
}

// Strides of a tensor that holds all positions, its dimensions in any order in memory, now and then
// with padding. Returns the bytes that it takes.
int64_t RandomCopy::ChooseStrides(std::mt19937_64& random, int64_t Stretch::*first, bool may_repeat,
                                  int64_t element_bytes,
                                  std::array<int64_t, kMaxTensorDims>* strides) const {
  std::vector<size_t> order(static_cast<size_t>(copy.dims));
  std::iota(order.rbegin(), order.rend(), size_t{0});  // innermost first
  if (Chance(random, 40)) std::shuffle(order.begin(), order.end(), random);
  const bool padded = Chance(random, 50);
  int64_t bytes = element_bytes;
  for (const size_t d : order) {
    if (padded && Chance(random, 30)) bytes += Uniform(random, 1, 3) * element_bytes;
    if (may_repeat && Chance(random, 5)) continue;  // stride 0: one position for all
    (*strides)[d] = bytes;
    bytes *= Positions(runs[d], first);
  }
  return bytes;
}

std::vector<int64_t> RandomCopy::Offsets(int64_t Stretch::*first,
                                         const std::array<int64_t, kMaxTensorDims>& strides) const {
  std::vector<int64_t> offsets = {0};
  for (size_t d = 0; d < static_cast<size_t>(copy.dims); ++d) {
    std::vector<int64_t> next;
    for (const int64_t offset : offsets) {
      for (const Stretch& run : runs[d]) {
        for (int64_t i = 0; i < run.length; ++i) {
          next.push_back(offset + (run.*first + i) * strides[d]);
        }
      }
    }
    offsets = std::move(next);
  }
  return {offsets.begin() + copy.begin, offsets.begin() + copy.end};
}

std::vector<std::byte> RandomCopy::Expected() const {
  std::vector<std::byte> expected = dst_memory;
  const std::vector<int64_t> src = SrcOffsets();
  const std::vector<int64_t> dst = DstOffsets();
  for (size_t i = 0; i < src.size(); ++i) {
    uint64_t code =
        LoadCode(&src_memory[static_cast<size_t>(kGuardBytes + src[i])], copy.src_dtype);
    if (copy.src_dtype != copy.dst_dtype) code = CastCode(copy.src_dtype, copy.dst_dtype, code);
    StoreCode(code, copy.dst_dtype, &expected[static_cast<size_t>(kGuardBytes + dst[i])]);
  }
  return expected;
}

BoxCopy::BoxCopy(DType dtype, const std::vector<int64_t>& sizes,
                 const std::vector<int64_t>& src_strides, const std::vector<int64_t>& dst_strides) {
  copy.dims = static_cast<int>(sizes.size());
  copy.src_dtype = copy.dst_dtype = dtype;
  copy.end = 1;
  for (size_t d = 0; d < sizes.size(); ++d) {
    runs[d] = {0, 0, sizes[d]};
    copy.runs[d] = absl::MakeConstSpan(&runs[d], 1);
    copy.src_strides[d] = src_strides[d];
    copy.dst_strides[d] = dst_strides[d];
    copy.end *= sizes[d];
  }
}

}  // namespace sluice
