// Strided copies against an oracle that moves and casts one element at a time.
#include "device/strided_copy.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "device/each_target.h"
#include "device/float_oracle.h"
#include "device/reference_copy.h"
#include "gtest/gtest.h"
#include "sluice/tensor.h"

namespace sluice {
namespace {

constexpr uint64_t kSeeds = 5000;

// The offset that ContiguousOffset promises, from the offsets of all elements.
int64_t OffsetIfContiguous(const std::vector<int64_t>& offsets, int64_t element_bytes) {
  for (size_t i = 1; i < offsets.size(); ++i) {
    if (offsets[i] != offsets[i - 1] + element_bytes) return -1;
  }
  return offsets.empty() ? 0 : offsets.front();
}

class StridedCopyTest : public EachTarget {};
INSTANTIATE_TEST_SUITE_P(Targets, StridedCopyTest, AllTargets(), TargetNameOf);

TEST_P(StridedCopyTest, RandomCopiesMoveExactlyTheirElements) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    RandomCopy random(seed);
    const std::vector<std::byte> expected = random.Expected();
    CopyStrided(random.copy);
    ASSERT_TRUE(random.dst_memory == expected) << "seed " << seed;
  }
}

TEST_P(StridedCopyTest, PartsThatFollowEachOtherMakeTheWhole) {
  for (uint64_t seed = 0; seed < kSeeds / 10; ++seed) {
    RandomCopy random(seed);
    const std::vector<std::byte> expected = random.Expected();
    const int64_t elements = random.copy.end - random.copy.begin;
    StridedCopy part = random.copy;
    for (const int64_t cut : {elements / 3, elements / 2, elements}) {
      part.end = random.copy.begin + cut;
      CopyStrided(part);
      part.begin = part.end;
    }
    ASSERT_TRUE(random.dst_memory == expected) << "seed " << seed;
  }
}

TEST(BytesCopyTest, ContiguousRangesAreFoundExactly) {
  int64_t contiguous = 0;
  int64_t scattered = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const RandomCopy random(seed);
    const int64_t src = OffsetIfContiguous(random.SrcOffsets(), DTypeBytes(random.copy.src_dtype));
    const int64_t dst = OffsetIfContiguous(random.DstOffsets(), DTypeBytes(random.copy.dst_dtype));
    const auto [begin, end] = std::pair(random.copy.begin, random.copy.end);
    ASSERT_EQ(ContiguousOffset(SrcSide(random.copy), begin, end), src) << "seed " << seed;
    ASSERT_EQ(ContiguousOffset(DstSide(random.copy), begin, end), dst) << "seed " << seed;
    if (random.copy.end - random.copy.begin > 1) {
      contiguous += (src >= 0) + (dst >= 0);
      scattered += (src < 0) + (dst < 0);
    }
  }
  // The cases are no test of either answer without enough of both.
  EXPECT_GT(contiguous, 500);
  EXPECT_GT(scattered, 500);
}

// Copies a matrix of rows and columns between memory of these strides, in bytes.
template <class Src, class Dst>
void CopyMatrix(int64_t rows, int64_t columns, DType src_dtype, const std::vector<Src>& src,
                std::array<int64_t, 2> src_strides, DType dst_dtype, std::vector<Dst>* dst,
                std::array<int64_t, 2> dst_strides) {
  BoxCopy box(src_dtype, {rows, columns}, {src_strides[0], src_strides[1]},
              {dst_strides[0], dst_strides[1]});
  box.copy.dst_dtype = dst_dtype;
  box.copy.src = reinterpret_cast<const std::byte*>(src.data());
  box.copy.dst = reinterpret_cast<std::byte*>(dst->data());
  CopyStrided(box.copy);
}

// A dense one of four rows, which is not placed yet.
struct Square : BoxCopy {
  Square() : BoxCopy(DType::kF32, {4, 4}, {16, 4}, {16, 4}) {}
};

TEST(BytesCopyTest, TransposesMatricesOfAnySize) {
  for (const int64_t rows : {1, 7, 64, 65, 200}) {
    for (const int64_t columns : {1, 3, 8, 9, 130}) {
      std::vector<uint32_t> src(static_cast<size_t>(rows * columns));
      std::vector<uint32_t> dst(src.size());
      std::vector<uint32_t> back(src.size());
      for (size_t i = 0; i < src.size(); ++i) src[i] = static_cast<uint32_t>(i + 1);
      CopyMatrix(rows, columns, DType::kF32, src, {4, 4 * rows}, DType::kF32, &dst,
                 {4 * columns, 4});
      for (int64_t i = 0; i < rows; ++i) {
        for (int64_t j = 0; j < columns; ++j) {
          ASSERT_EQ(dst[static_cast<size_t>(i * columns + j)], i + j * rows + 1);
        }
      }
      CopyMatrix(rows, columns, DType::kF32, dst, {4 * columns, 4}, DType::kF32, &back,
                 {4, 4 * rows});
      ASSERT_EQ(back, src);
    }
  }
}

// Rows of all lengths about the cut between those that are cast alone and those that are cast
// together, with gaps on one side, the other, both or none.
TEST_P(StridedCopyTest, CastsEveryRowLengthWithAnyGaps) {
  constexpr int64_t kRows = 5;
  for (int64_t length = 1; length <= 300; ++length) {
    for (const int64_t gaps : {0, 1, 2, 3}) {
      const int64_t src_row = length + (gaps & 1) * 3;
      const int64_t dst_row = length + (gaps >> 1) * 3;
      std::vector<float> src(static_cast<size_t>(kRows * src_row));
      std::vector<uint16_t> dst(static_cast<size_t>(kRows * dst_row), 0xBEEF);
      for (size_t i = 0; i < src.size(); ++i) src[i] = static_cast<float>(i) + 0.1f;
      CopyMatrix(kRows, length, DType::kF32, src, {4 * src_row, 4}, DType::kBF16, &dst,
                 {2 * dst_row, 2});
      for (int64_t i = 0; i < kRows * dst_row; ++i) {
        const int64_t column = i % dst_row;
        const auto from = static_cast<size_t>(i / dst_row * src_row + column);
        ASSERT_EQ(dst[static_cast<size_t>(i)],
                  column < length ? Encode(DType::kBF16, double{src[from]}) : 0xBEEF)
            << length << " at " << i;
      }
    }
  }
}

TEST_P(StridedCopyTest, CastsTransposedMatricesOfAnySize) {
  for (const int64_t rows : {1, 7, 32, 33, 200}) {
    for (const int64_t columns : {1, 3, 31, 64, 130}) {
      std::vector<double> src(static_cast<size_t>(rows * columns));
      std::vector<uint16_t> dst(src.size());
      for (size_t i = 0; i < src.size(); ++i) src[i] = static_cast<double>(i) + 0.1;
      CopyMatrix(rows, columns, DType::kF64, src, {8, 8 * rows}, DType::kF16, &dst,
                 {2 * columns, 2});
      for (int64_t i = 0; i < rows; ++i) {
        for (int64_t j = 0; j < columns; ++j) {
          ASSERT_EQ(dst[static_cast<size_t>(i * columns + j)],
                    Encode(DType::kF16, src[static_cast<size_t>(i + j * rows)]));
        }
      }
    }
  }
}

TEST(BytesCopyTest, EveryRowLengthBetweenGaps) {
  constexpr int64_t kRows = 5;
  for (int64_t length = 1; length <= 300; ++length) {
    const int64_t stride = length + 3;
    std::vector<std::byte> src(static_cast<size_t>(kRows * stride));
    std::vector<std::byte> dst(src.size(), std::byte{0});
    for (size_t i = 0; i < src.size(); ++i) src[i] = static_cast<std::byte>(i % 251 + 1);
    CopyMatrix(kRows, length, DType::kU8, src, {stride, 1}, DType::kU8, &dst, {stride, 1});
    for (int64_t i = 0; i < kRows * stride; ++i) {
      const auto at = static_cast<size_t>(i);
      ASSERT_EQ(dst[at], i % stride < length ? src[at] : std::byte{0}) << length << " at " << i;
    }
  }
}

TEST(BytesCopyTest, AnEmptyRangeTouchesNothing) {
  Square square;
  square.copy.begin = square.copy.end = 16;
  CopyStrided(square.copy);  // from and to no memory at all
  EXPECT_EQ(ContiguousOffset(SrcSide(square.copy), 16, 16), 0);
  EXPECT_EQ(ContiguousOffset(DstSide(square.copy), 16, 16), 0);
}

TEST(StridedCopyDeathTest, ARangeOutsideTheRegionIsRefused) {
  std::vector<std::byte> memory(256);
  Square square;
  square.copy.src = memory.data();
  square.copy.dst = memory.data() + 128;
  square.copy.end = 17;
  EXPECT_DEATH(CopyStrided(square.copy), "outside the region");
}

TEST(StridedCopyDeathTest, ACastThatDoesNotExistIsRefused) {
  Square square;
  square.copy.dst_dtype = DType::kI32;
  EXPECT_DEATH(CopyStrided(square.copy), "no such cast");
}

}  // namespace
}  // namespace sluice
