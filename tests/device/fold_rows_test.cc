// Folds of rows against the oracle: all types and operations, any number of sources, any length and
// alignment, plain and streaming.
#include "device/fold_rows.h"

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "device/each_target.h"
#include "device/float_oracle.h"
#include "device/reduction_codes.h"
#include "device/stream_rows.h"
#include "gtest/gtest.h"
#include "sluice/layout.h"
#include "sluice/tensor.h"

namespace sluice {
namespace {

class FoldRowsTest : public EachTarget {};
INSTANTIATE_TEST_SUITE_P(Targets, FoldRowsTest, AllTargets(), TargetNameOf);

CodeRows RandomRows(DType dtype, size_t sources, size_t length, std::mt19937_64& random) {
  CodeRows rows(sources);
  for (auto& row : rows) row = RandomCodes(dtype, length, random);
  return rows;
}

// `shift`: how far the destination begins from a cache line. The sources begin elsewhere.
testing::AssertionResult FoldsAsTheOracle(const ReductionCase& how, const CodeRows& rows,
                                          size_t shift, WriteHint stores) {
  return ReducesAsTheOracle(how, rows, shift, [&](const auto& sources, std::byte* dst) {
    RowFold(how.op, how.dtype, how.divisor)
        .Fold(sources, dst, static_cast<int64_t>(rows[0].size()), stores);
    StreamFence();
  });
}

TEST_P(FoldRowsTest, EveryPairOfSpecialValues) {
  for (const DType dtype : kReducedTypes) {
    CodeRows rows(3);
    const std::vector<uint64_t> codes = SpecialCodes(dtype);
    for (const uint64_t left : codes) {
      for (const uint64_t right : codes) {
        rows[0].push_back(left);
        rows[1].push_back(right);
        rows[2].push_back(codes[(rows[2].size() * 7) % codes.size()]);
      }
    }
    for (const ReduceOp op : kReduceOps) {
      for (const int64_t divisor : {1, 3}) {
        for (const size_t sources : {2, 3}) {
          const CodeRows some(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(sources));
          EXPECT_TRUE(FoldsAsTheOracle({op, dtype, divisor}, some, 0, WriteHint::kPlain));
          EXPECT_TRUE(FoldsAsTheOracle({op, dtype, divisor}, some, 0, WriteHint::kStreaming));
        }
      }
    }
  }
}

TEST_P(FoldRowsTest, AnyNumberOfSourcesAtAnyLengthAndAlignment) {
  std::mt19937_64 random(1);
  for (const DType dtype : kReducedTypes) {
    for (const ReduceOp op : kReduceOps) {
      for (const size_t length : {0, 1, 33, 1023, 3001}) {
        for (const size_t sources : {2, 3, 5}) {
          const CodeRows rows = RandomRows(dtype, sources, length, random);
          const int64_t divisor = op == ReduceOp::kAvg ? static_cast<int64_t>(sources) : 1;
          const WriteHint stores = random() % 4 == 0 ? WriteHint::kPlain : WriteHint::kStreaming;
          ASSERT_TRUE(FoldsAsTheOracle({op, dtype, divisor}, rows, random() % 64, stores));
        }
      }
    }
  }
}

// Each line, and each block of a fold of many, begins and ends somewhere in the destination.
TEST_P(FoldRowsTest, StreamsFromEveryAlignment) {
  std::mt19937_64 random(2);
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kI64, DType::kU8}) {
    for (const size_t sources : {2, 4}) {
      const auto length = static_cast<size_t>(10000 / DTypeBytes(dtype) + 1);
      const CodeRows rows = RandomRows(dtype, sources, length, random);
      for (size_t shift = 0; shift < 64; ++shift) {
        const auto divisor = static_cast<int64_t>(1 + shift / 2 % 2);
        ASSERT_TRUE(
            FoldsAsTheOracle({ReduceOp::kAvg, dtype, divisor}, rows, shift, WriteHint::kStreaming));
      }
    }
  }
}

TEST_P(FoldRowsTest, TheDestinationMayBeTheFirstSource) {
  std::mt19937_64 random(3);
  for (const WriteHint stores : {WriteHint::kPlain, WriteHint::kStreaming}) {
    for (const size_t sources : {2, 3}) {
      for (const int64_t divisor : {1, 3}) {
        const ReductionCase fold = {ReduceOp::kAvg, DType::kF32, divisor};
        const CodeRows rows = RandomRows(DType::kF32, sources, 5000, random);
        std::vector<std::vector<std::byte>> memory;
        std::vector<const std::byte*> from;
        for (const auto& row : rows) memory.push_back(StoreCodes(row, DType::kF32));
        for (const auto& row : memory) from.push_back(row.data());
        RowFold(fold.op, fold.dtype, fold.divisor).Fold(from, memory[0].data(), 5000, stores);
        StreamFence();
        for (size_t i = 0; i < 5000; ++i) {
          ASSERT_EQ(LoadCode(memory[0].data() + i * 4, DType::kF32), ReducedCode(fold, rows, i));
        }
      }
    }
  }
}

TEST(FoldRowsDeathTest, ThereIsNoneOfBoolNorOfOne) {
  const std::byte one{1};
  const std::byte* const sources[] = {&one};
  std::byte dst{};
  EXPECT_DEATH(RowFold(ReduceOp::kMax, DType::kBool, 1), "not reduced");
  EXPECT_DEATH(RowFold(ReduceOp::kMax, DType::kU8, 1).Fold(sources, &dst, 1, WriteHint::kPlain),
               "one source");
}

}  // namespace
}  // namespace sluice
