// Elements for tests of reductions: random ones, and those that are special. And what reductions of
// rows must give.
#ifndef SLUICE_TESTS_DEVICE_REDUCTION_CODES_H_
#define SLUICE_TESTS_DEVICE_REDUCTION_CODES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "sluice/layout.h"
#include "sluice/tensor.h"

namespace sluice {

inline constexpr std::array<DType, 14> kReducedTypes = {
    DType::kF64,    DType::kF32, DType::kF16, DType::kBF16, DType::kF8E4M3,
    DType::kF8E5M2, DType::kI64, DType::kI32, DType::kI8,   DType::kU8,
    DType::kI16,    DType::kU16, DType::kU32, DType::kU64};
inline constexpr std::array<ReduceOp, 5> kReduceOps = {
    ReduceOp::kSum, ReduceOp::kAvg, ReduceOp::kMax, ReduceOp::kMin, ReduceOp::kProduct};

// Any bits; of floats half have a middling exponent, so that sums neither vanish nor overflow.
std::vector<uint64_t> RandomCodes(DType dtype, size_t count, std::mt19937_64& random);

// Zeros, ones, the ends of the range, infinities and NaN of several kinds, of both signs.
std::vector<uint64_t> SpecialCodes(DType dtype);

struct ReductionCase {
  ReduceOp op;
  DType dtype;
  int64_t divisor = 1;
};

// The rows to be reduced, source by source.
using CodeRows = std::vector<std::vector<uint64_t>>;

// One contribution after another; the last one divides.
uint64_t ReducedCode(const ReductionCase& how, const CodeRows& rows, size_t i);

// Makes one row at `dst` of these.
using RowReducer =
    std::function<void(const std::vector<const std::byte*>& sources, std::byte* dst)>;

// Compares all bytes of the row that `reduce` makes. `shift`: how far it begins from a cache line.
// The sources begin elsewhere.
testing::AssertionResult ReducesAsTheOracle(const ReductionCase& how, const CodeRows& rows,
                                            size_t shift, const RowReducer& reduce);

}  // namespace sluice

#endif  // SLUICE_TESTS_DEVICE_REDUCTION_CODES_H_
