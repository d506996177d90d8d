// Copies with streaming stores against an oracle that copies one byte at a time.
#include "device/stream_rows.h"

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "absl/types/span.h"
#include "device/copy_rows.h"
#include "device/each_target.h"
#include "device/float_oracle.h"
#include "device/stores.h"
#include "device/strided_copy.h"
#include "gtest/gtest.h"
#include "sluice/tensor.h"
#include "tensor/stretch.h"

namespace sluice {
namespace {

constexpr std::byte kUntouched{0xA5};
constexpr size_t kLineBytes = 64;

std::vector<std::byte> RandomBytes(size_t bytes) {
  std::mt19937_64 random(bytes);
  std::vector<std::byte> memory(bytes);
  for (std::byte& byte : memory) byte = static_cast<std::byte>(random());
  return memory;
}

// The offset from which `memory` is aligned to lines.
size_t ToLine(const std::vector<std::byte>& memory) {
  return (kLineBytes - reinterpret_cast<uintptr_t>(memory.data()) % kLineBytes) % kLineBytes;
}

class StreamingTest : public EachTarget {};
INSTANTIATE_TEST_SUITE_P(Targets, StreamingTest, AllTargets(), TargetNameOf);

TEST_P(StreamingTest, RowsBeginAndEndAnywhere) {
  constexpr int64_t kRows = 3;
  for (const int64_t length : {1, 63, 64, 65, 127, 128, 129, 191, 200, 1023, 1024, 1100}) {
    for (size_t shift = 0; shift < kLineBytes; ++shift) {
      const CopyAxis axis = {kRows, length + static_cast<int64_t>(shift % 5), length + 7};
      const std::vector<std::byte> src =
          RandomBytes(static_cast<size_t>(kRows * axis.src_stride) + shift);
      std::vector<std::byte> dst(static_cast<size_t>(kRows * axis.dst_stride) + 2 * kLineBytes,
                                 kUntouched);
      std::vector<std::byte> expected = dst;
      const size_t at = ToLine(dst) + shift;
      for (int64_t i = 0; i < kRows * length; ++i) {
        const int64_t row = i / length;
        expected[at + static_cast<size_t>(row * axis.dst_stride + i % length)] =
            src[shift % 3 + static_cast<size_t>(row * axis.src_stride + i % length)];
      }
      StreamRows(src.data() + shift % 3, dst.data() + at, axis, length);
      StreamFence();
      ASSERT_TRUE(dst == expected) << length << " bytes, " << shift << " past a line";
    }
  }
}

// A matrix of `rows` x `columns` elements whose rows have `gap` elements between them.
struct Matrix {
  Matrix(DType from, DType to, int64_t rows, int64_t columns, int64_t gap)
      : row_run{0, 0, rows},
        column_run{0, 0, columns},
        src(RandomBytes(static_cast<size_t>(rows * (columns + gap) * DTypeBytes(from)))),
        dst(static_cast<size_t>(rows * (columns + gap) * DTypeBytes(to)) + 2 * kLineBytes,
            kUntouched) {
    copy.dims = 2;
    copy.runs[0] = absl::MakeConstSpan(&row_run, 1);
    copy.runs[1] = absl::MakeConstSpan(&column_run, 1);
    copy.src_dtype = from;
    copy.dst_dtype = to;
    copy.src_strides = {(columns + gap) * DTypeBytes(from), DTypeBytes(from)};
    copy.dst_strides = {(columns + gap) * DTypeBytes(to), DTypeBytes(to)};
    copy.src = src.data();
    copy.end = rows * columns;
    copy.stores = WriteHint::kStreaming;
  }
  Matrix(const Matrix&) = delete;
  Matrix& operator=(const Matrix&) = delete;

  // What `dst` must be once it is copied to `at` bytes from its beginning.
  std::vector<std::byte> Expected(size_t at) const {
    std::vector<std::byte> expected(dst.size(), kUntouched);
    for (int64_t row = 0; row < row_run.length; ++row) {
      for (int64_t i = 0; i < column_run.length; ++i) {
        const int64_t from = row * copy.src_strides[0] + i * copy.src_strides[1];
        const int64_t to = row * copy.dst_strides[0] + i * copy.dst_strides[1];
        const uint64_t code = LoadCode(&src[static_cast<size_t>(from)], copy.src_dtype);
        StoreCode(copy.src_dtype == copy.dst_dtype ? code
                                                   : CastCode(copy.src_dtype, copy.dst_dtype, code),
                  copy.dst_dtype, &expected[at + static_cast<size_t>(to)]);
      }
    }
    return expected;
  }

  Stretch row_run;
  Stretch column_run;
  std::vector<std::byte> src;
  std::vector<std::byte> dst;
  StridedCopy copy;
};

// About the lengths from which rows are streamed, with whole lines and without.
TEST_P(StreamingTest, StridedCopiesOfAnyTypesAndRows) {
  std::vector<DType> types(kFloatTypes.begin(), kFloatTypes.end());
  for (const DType from : types) {
    for (const DType to : types) {
      for (const int64_t columns : {16, 64, 128, 131, 512, 1024, 1031}) {
        for (const int64_t gap : {0, 5, 64}) {
          for (const size_t shift : {0, 1, 8}) {
            Matrix matrix(from, to, 3, columns, gap);
            const size_t at = ToLine(matrix.dst) + shift;
            matrix.copy.dst = matrix.dst.data() + at;
            CopyStrided(matrix.copy);
            ASSERT_TRUE(matrix.dst == matrix.Expected(at))
                << DTypeName(from) << " to " << DTypeName(to) << ", rows of " << columns << " and "
                << gap << " between them, " << shift << " past a line";
          }
        }
      }
    }
  }
}

// Only these tell whether stores are streamed at all: the bytes are the same.
TEST(StoresTest, WhatFitsTheCacheIsStoredPlainly) {
  EXPECT_EQ(StoresFor(0, 16), WriteHint::kPlain);
  EXPECT_EQ(StoresFor(8, 16), WriteHint::kPlain);
  EXPECT_EQ(StoresFor(9, 16), WriteHint::kStreaming);
  EXPECT_EQ(ResolveStores(WriteHint::kAuto, 1), WriteHint::kPlain);
  EXPECT_EQ(ResolveStores(WriteHint::kAuto, INT64_MAX), WriteHint::kStreaming);
  EXPECT_EQ(ResolveStores(WriteHint::kPlain, INT64_MAX), WriteHint::kPlain);
  EXPECT_EQ(ResolveStores(WriteHint::kStreaming, 1), WriteHint::kStreaming);
}

TEST(StoresTest, ShortRowsAreNotStreamed) {
  alignas(64) const std::byte line[64] = {};
  const std::byte* dst = line;
  const CopyAxis gaps = {4, 0, 1 << 20};
  EXPECT_TRUE(StreamingPays(dst, gaps, 128));
  EXPECT_FALSE(StreamingPays(dst, gaps, 64));
  EXPECT_FALSE(StreamingPays(dst + 1, gaps, 128));
  EXPECT_FALSE(StreamingPays(dst, gaps, 129));
  EXPECT_FALSE(StreamingPays(dst, {4, 0, (1 << 20) + 1}, 128));
  EXPECT_TRUE(StreamingPays(dst + 1, gaps, 1024));
  EXPECT_TRUE(StreamingPays(dst, {4, 0, 1024}, 1024));
  EXPECT_FALSE(StreamingPays(dst, {4, 0, 960}, 960));
  EXPECT_FALSE(StreamingPays(dst + 1, {}, 8191));
  EXPECT_TRUE(StreamingPays(dst + 1, {}, 8192));
}

}  // namespace
}  // namespace sluice
