// What is computed has the same bits in every floating-point mode of the caller.
#include "device/float_mode.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <vector>

#include "absl/types/span.h"
#include "device/fold_rows.h"
#include "device/normalization.h"
#include "device/reduction.h"
#include "device/strided_copy.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

constexpr int64_t kCount = 1000;

#if defined(__x86_64__)
constexpr uint64_t kOddMode = 0xDFC0;  // flushes results and operands, rounds up
#elif defined(__aarch64__)
constexpr uint64_t kOddMode = 0x03C80000;
#else
constexpr uint64_t kOddMode = 0;
#endif

// Small numbers, most of them subnormal, with bits for rounding.
std::vector<float> Tiny(uint32_t step) {
  std::vector<float> values(kCount);
  for (uint32_t i = 0; i < kCount; ++i) {
    const uint32_t bits = 1 + i * step;
    std::memcpy(&values[i], &bits, sizeof(bits));
  }
  return values;
}

const std::byte* Bytes(const std::vector<float>& values) {
  return reinterpret_cast<const std::byte*>(values.data());
}

// What `compute` writes, in the mode that a caller has.
std::vector<std::byte> Computed(uint64_t mode, const std::function<void(std::byte*)>& compute) {
  std::vector<std::byte> got(kCount * sizeof(double));
  const uint64_t before = ReadFloatMode();
  WriteFloatMode(mode);
  compute(got.data());
  const uint64_t after = ReadFloatMode();
  WriteFloatMode(before);
  EXPECT_EQ(after & kFloatModeBits, mode & kFloatModeBits) << "the caller's mode is not put back";
  return got;
}

void ExpectTheSame(const std::function<void(std::byte*)>& compute) {
  EXPECT_TRUE(Computed(kOddMode, compute) == Computed(kPromisedFloatMode, compute));
}

TEST(FloatModeTest, CastsGiveTheSame) {
  const std::vector<float> values = Tiny(8191);
  const Stretch all = {0, 0, kCount};
  for (const DType to : {DType::kF64, DType::kF16, DType::kBF16, DType::kF8E4M3}) {
    StridedCopy copy;
    copy.runs[0] = absl::MakeConstSpan(&all, 1);
    copy.src_dtype = DType::kF32;
    copy.dst_dtype = to;
    copy.src_strides[0] = sizeof(float);
    copy.dst_strides[0] = DTypeBytes(to);
    copy.src = Bytes(values);
    copy.end = kCount;
    ExpectTheSame([&copy](std::byte* dst) {
      copy.dst = dst;
      CopyStrided(copy);
    });
  }
}

TEST(FloatModeTest, FoldsGiveTheSame) {
  const std::vector<float> left = Tiny(8191);
  const std::vector<float> right = Tiny(5);
  const RowFold fold(ReduceOp::kAvg, DType::kF32, 3);
  const std::vector<const std::byte*> sources = {Bytes(left), Bytes(right), Bytes(right)};
  ExpectTheSame([&](std::byte* dst) { fold.Fold(sources, dst, kCount, WriteHint::kPlain); });
}

TEST(FloatModeTest, ReductionsGiveTheSame) {
  const std::vector<float> left = Tiny(8191);
  const std::vector<float> right = Tiny(5);
  ExpectTheSame([&](std::byte* dst) {
    std::memcpy(dst, left.data(), kCount * sizeof(float));
    Reduction reduction;
    reduction.op = ReduceOp::kAvg;
    reduction.dtype = DType::kF32;
    reduction.src = Bytes(right);
    reduction.dst = dst;
    reduction.elements = kCount;
    reduction.divisor = 3;
    Reduce(reduction);
  });
}

TEST(FloatModeTest, NormalizationsGiveTheSame) {
  const std::vector<float> values = Tiny(8191);
  ExpectTheSame([&](std::byte* dst) {
    Normalization normalization;
    normalization.src_dtype = DType::kF32;
    normalization.dst_dtype = DType::kF32;
    normalization.src = Bytes(values);
    normalization.dst = dst;
    normalization.elements = kCount;
    normalization.scale = 0.3F;
    normalization.bias = 1e-39F;
    Normalize(normalization);
  });
}

}  // namespace
}  // namespace sluice
