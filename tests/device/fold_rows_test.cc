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

constexpr size_t kGuardBytes = 64;
constexpr std::byte kUntouched{0xA5};

class FoldRowsTest : public EachTarget {};
INSTANTIATE_TEST_SUITE_P(Targets, FoldRowsTest, AllTargets(), TargetNameOf);

// What is folded: source by source.
using Codes = std::vector<std::vector<uint64_t>>;

struct Case {
  ReduceOp op;
  DType dtype;
  int64_t divisor = 1;
};

Codes RandomRows(DType dtype, size_t sources, size_t length, std::mt19937_64& random) {
  Codes rows(sources);
  for (auto& row : rows) row = RandomCodes(dtype, length, random);
  return rows;
}

// One contribution after another; the last one divides.
uint64_t OracleOf(const Case& fold, const Codes& rows, size_t i) {
  uint64_t code = rows[0][i];
  for (size_t row = 1; row < rows.size(); ++row) {
    const Reduction step = {fold.op, fold.dtype, nullptr,
                            nullptr, 0,          row + 1 == rows.size() ? fold.divisor : 1};
    code = ReduceCodes(step, code, rows[row][i]);
  }
  return code;
}

// `shift`: how far the destination begins from a cache line. The sources begin elsewhere.
testing::AssertionResult FoldsAsTheOracle(const Case& fold, const Codes& rows, size_t shift,
                                          WriteHint stores) {
  const auto bytes = static_cast<size_t>(DTypeBytes(fold.dtype));
  const size_t length = rows[0].size();
  std::vector<std::vector<std::byte>> memory;
  std::vector<const std::byte*> sources;
  for (const auto& row : rows) {
    const size_t begin = memory.size() * 5 % 13;
    memory.emplace_back(begin + length * bytes);
    for (size_t i = 0; i < length; ++i) {
      StoreCode(row[i], fold.dtype, memory.back().data() + begin + i * bytes);
    }
    sources.push_back(memory.back().data() + begin);
  }
  std::vector<std::byte> to(3 * kGuardBytes + shift + length * bytes, kUntouched);
  std::byte* const line =
      to.data() + kGuardBytes + -reinterpret_cast<uintptr_t>(to.data()) % kGuardBytes;
  std::byte* const dst = line + shift;
  std::vector<std::byte> expected = to;
  std::vector<uint64_t> wanted;
  for (size_t i = 0; i < length; ++i) {
    wanted.push_back(OracleOf(fold, rows, i));
    StoreCode(wanted[i], fold.dtype, expected.data() + (dst - to.data()) + i * bytes);
  }
  RowFold(fold.op, fold.dtype, fold.divisor)
      .Fold(sources, dst, static_cast<int64_t>(length), stores);
  StreamFence();
  for (size_t i = 0; i < length; ++i) {
    const uint64_t got = LoadCode(dst + i * bytes, fold.dtype);
    if (got == wanted[i]) continue;
    return testing::AssertionFailure()
           << DTypeName(fold.dtype) << ", op " << static_cast<int>(fold.op) << ", divisor "
           << fold.divisor << ", element " << i << " of " << length << " from " << rows.size()
           << " sources gave " << std::hex << got << ", not " << wanted[i];
  }
  if (to == expected) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "wrote outside its row";
}

TEST_P(FoldRowsTest, EveryPairOfSpecialValues) {
  for (const DType dtype : kReducedTypes) {
    Codes rows(3);
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
          const Codes some(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(sources));
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
          const Codes rows = RandomRows(dtype, sources, length, random);
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
      const Codes rows = RandomRows(dtype, sources, length, random);
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
        const Case fold = {ReduceOp::kAvg, DType::kF32, divisor};
        const Codes rows = RandomRows(DType::kF32, sources, 5000, random);
        std::vector<std::vector<std::byte>> memory;
        std::vector<const std::byte*> from;
        for (const auto& row : rows) memory.push_back(StoreCodes(row, DType::kF32));
        for (const auto& row : memory) from.push_back(row.data());
        RowFold(fold.op, fold.dtype, fold.divisor).Fold(from, memory[0].data(), 5000, stores);
        StreamFence();
        for (size_t i = 0; i < 5000; ++i) {
          ASSERT_EQ(LoadCode(memory[0].data() + i * 4, DType::kF32), OracleOf(fold, rows, i));
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
