// Traces as bytes: there and back, and bad bytes.
#include "trace/serialize.h"

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

std::vector<TraceEvent> Events() {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  return {
      {},
      {.id = BucketId({.run = (1 << kRunBits) - 1,
                       .window = (1 << kWindowBits) - 1,
                       .round = (1 << kRoundBits) - 1,
                       .phase = (1 << kPhaseBits) - 1,
                       .src = (1 << kRankBits) - 1,
                       .dst = (1 << kRankBits) - 1,
                       .n = (1 << kCountBits) - 1}),
       .begin_ns = -5,
       .end_ns = kTraceTimeEndNs - 1,
       .bytes = kMost,
       .item = kMost,
       .count = std::numeric_limits<int32_t>::max(),
       .track = std::numeric_limits<int32_t>::max(),
       .epoch = std::numeric_limits<int32_t>::max(),
       .has_id = true,
       .kind = kLastTraceKind},
      {.id = BucketId({.run = 1, .round = 3, .dst = 70000, .n = 2}),
       .begin_ns = 0x0102030405060708,
       .end_ns = 0x0102030405060709,
       .bytes = 256,
       .count = 257,
       .kind = TraceKind::kFill},
  };
}

TraceContent Content() {
  TraceContent content;
  content.rank = 70000;
  content.dropped = 12;
  content.tracks = {"consumer", "", "a \"name\" with \xff"};
  content.tensors = {"layers.0.weight", "b"};
  content.events = Events();
  return content;
}

TEST(TraceBytes, ThereAndBack) {
  const TraceContent written = Content();
  const TraceContent content = DecodeTrace(EncodeTrace(written)).value();
  EXPECT_EQ(content.rank, 70000);
  EXPECT_EQ(content.dropped, 12);
  EXPECT_EQ(content.tracks, written.tracks);
  EXPECT_EQ(content.tensors, written.tensors);
  EXPECT_EQ(content.events, written.events);
}

TEST(TraceBytes, NothingRecorded) {
  const TraceContent content = DecodeTrace(EncodeTrace({})).value();
  EXPECT_TRUE(content.events.empty());
}

TEST(TraceBytes, NoPartOfThemIsATrace) {
  const std::string bytes = EncodeTrace(Content());
  for (size_t length = 0; length < bytes.size(); ++length) {
    const absl::StatusOr<TraceContent> content = DecodeTrace(bytes.substr(0, length));
    EXPECT_EQ(content.status().code(), absl::StatusCode::kInvalidArgument) << length;
  }
  EXPECT_FALSE(DecodeTrace(bytes + "x").ok());
}

TEST(TraceBytes, SaysWhatIsWrong) {
  EXPECT_THAT(DecodeTrace("hello").status().message(), HasSubstr("not a serialised trace"));
  std::string bytes = EncodeTrace(Content());
  bytes.back() = 100;
  EXPECT_THAT(DecodeTrace(bytes).status().message(), HasSubstr("event 2"));
}

TEST(TraceBytes, AStageKeepsItsTensorsAndNeighbours) {
  TraceEvent event;
  EXPECT_EQ(event.stage(), TraceStage());
  for (const TraceStage& stage :
       {TraceStage{.tensor = 0, .tensors = 1}, TraceStage{.from = 0, .to = 70000},
        TraceStage{.tensor = 1 << 30, .tensors = 1 << 30, .from = 70000, .to = 0}}) {
    event.set_stage(stage);
    EXPECT_EQ(event.stage(), stage);
  }
}

// The values are part of what travels.
TEST(TraceBytes, KindsKeepTheirNumbers) {
  EXPECT_EQ(static_cast<int>(TraceKind::kSample), 0);
  EXPECT_EQ(static_cast<int>(TraceKind::kDrain), 3);
  EXPECT_EQ(static_cast<int>(TraceKind::kEpoch), 4);
  EXPECT_EQ(static_cast<int>(TraceKind::kExchange), 10);
  EXPECT_EQ(static_cast<int>(TraceKind::kStreamSample), 11);
}

}  // namespace
}  // namespace sluice
