// How far a generator may run, by what its consumer has done.
#include "session/stream/generate_gate.h"

#include <cstdint>

#include "gtest/gtest.h"

namespace sluice {
namespace {

StreamSource In(GenerateOrder order, int64_t ahead = 1) {
  return {.generate_order = order, .generate_ahead = ahead};
}

TEST(GenerateGateTest, FreeItRunsAheadOfWhatWasTaken) {
  GenerateGate gate(In(GenerateOrder::kFree, 3));
  EXPECT_EQ(gate.batches(), 3);
  gate.Taken();
  EXPECT_EQ(gate.batches(), 4);
  gate.UpdateEnded();
  EXPECT_EQ(gate.batches(), 4);
  EXPECT_EQ(gate.updates(), 1);
  GenerateGate far(In(GenerateOrder::kFree, INT64_MAX));
  far.Taken();
  EXPECT_EQ(far.batches(), INT64_MAX);
}

TEST(GenerateGateTest, AfterAnUpdateTheNextBatchMayBegin) {
  GenerateGate gate(In(GenerateOrder::kAfterUpdate));
  EXPECT_EQ(gate.batches(), 1);
  gate.Taken();
  EXPECT_EQ(gate.batches(), 1);
  gate.UpdateEnded();
  EXPECT_EQ(gate.batches(), 2);
}

TEST(GenerateGateTest, OneAheadTheBatchAfterTheNextMayBegin) {
  GenerateGate gate(In(GenerateOrder::kOneAhead));
  EXPECT_EQ(gate.batches(), 2);
  gate.Taken();
  gate.Taken();
  EXPECT_EQ(gate.batches(), 2);
  gate.UpdateEnded();
  EXPECT_EQ(gate.batches(), 3);
}

TEST(GenerateGateTest, AnUpdateWithoutABatchIsNone) {
  GenerateGate gate(In(GenerateOrder::kAfterUpdate));
  gate.UpdateEnded();
  EXPECT_EQ(gate.batches(), 1);
  gate.Taken();
  gate.UpdateEnded();
  gate.UpdateEnded();
  EXPECT_EQ(gate.updates(), 1);
  EXPECT_EQ(gate.batches(), 2);
}

}  // namespace
}  // namespace sluice
