// What callers of a transport may not ask for, of folds; and how an error names one.
#include "transport/op_check.h"

#include <array>
#include <cstddef>
#include <vector>

#include "gtest/gtest.h"

namespace sluice {
namespace {

constexpr TransportTraits kFolds = {.name = "test", .takes_folds = true};
constexpr int kRank = 0;
constexpr int kSize = 4;

// A fold of one own contribution between two of others, that may be started.
struct Folding {
  std::array<std::byte, 240> memory = {};
  std::vector<FoldSource> sources = {
      {.peer = 2, .tag = 7}, {.data = memory.data() + 120}, {.peer = 3, .tag = 7}};
  Fold fold;
  TransportOp op = {TransportOp::Kind::kReceive, 2, 7, memory.data(), 120};

  void Check(const TransportTraits& traits = kFolds) {
    fold.sources = sources;
    op.fold = &fold;
    CheckOps({&op, 1}, kRank, kSize, traits);
  }
};

TEST(OpCheckTest, CountsTheMessagesOfAFold) {
  Folding folding;
  folding.Check();
  const std::array<TransportOp, 2> ops = {TransportOp(), folding.op};
  EXPECT_EQ(CountOperations(ops), 4u);
  EXPECT_EQ(CountOperations({}), 0u);
}

TEST(OpCheckTest, SaysThatAReceiveFolds) {
  Folding folding;
  EXPECT_EQ(DescribeOp(folding.op, kRank).text(),
            "receive of 120 bytes from rank 2 to rank 0, tag 7");
  folding.Check();
  EXPECT_EQ(DescribeOp(folding.op, kRank).text(),
            "receive of 120 bytes from rank 2 to rank 0, tag 7, in a fold of 3");
}

template <typename Change>
void ExpectDeath(const char* message, Change change) {
  Folding folding;
  change(&folding);
  EXPECT_DEATH(folding.Check(), message);
}

TEST(OpCheckDeathTest, RefusesFoldsThatCannotBe) {
  EXPECT_DEATH(Folding().Check({.name = "mpi"}), "does not fold");
  ExpectDeath("only a receive", [](Folding* f) { f->op.kind = TransportOp::Kind::kSend; });
  ExpectDeath("not reduced", [](Folding* f) { f->fold.dtype = DType::kBool; });
  ExpectDeath("not reduced", [](Folding* f) { f->fold.dtype = DType::kC64; });
  ExpectDeath("half an element", [](Folding* f) { f->op.bytes = 118; });
  ExpectDeath("inside an element", [](Folding* f) { f->op.row_bytes = 6; });
  ExpectDeath("nothing to fold", [](Folding* f) { f->sources.resize(1); });
  ExpectDeath("twice", [](Folding* f) { f->sources[2].peer = 2; });
  ExpectDeath("without messages", [](Folding* f) { f->sources = {f->sources[1], f->sources[1]}; });
  ExpectDeath("first peer", [](Folding* f) { f->op.tag = 8; });
}

TEST(OpCheckDeathTest, RefusesContributionsThatCannotBe) {
  ExpectDeath("no rank", [](Folding* f) { f->sources[2].peer = kSize; });
  ExpectDeath("no message", [](Folding* f) { f->sources[2].peer = kRank; });
  ExpectDeath("tag", [](Folding* f) { f->sources[2].tag = -1; });
  ExpectDeath("no memory", [](Folding* f) { f->sources[1].data = nullptr; });
  ExpectDeath("half a row", [](Folding* f) { f->sources[1].row_bytes = 100; });
  ExpectDeath("inside an element", [](Folding* f) { f->sources[1].row_bytes = 10; });
}

}  // namespace
}  // namespace sluice
