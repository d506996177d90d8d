// What slots and a consumer leave in the trace of their session.
#include <optional>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "session/shard/stage_trace.h"
#include "session/stream/consumer_trace.h"

namespace sluice {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// What was recorded by whoever has given its recorder back.
std::vector<TraceEvent> EventsOf(JoinedTraceLog* log) {
  const LentRecorder recorder = log->LendRecorder(16);
  return {recorder->events().begin(), recorder->events().end()};
}

TraceEvent Span(TraceKind kind, int track, int epoch, int64_t item, int64_t bytes, int64_t begin_ns,
                int64_t end_ns) {
  return {.begin_ns = begin_ns,
          .end_ns = end_ns,
          .bytes = bytes,
          .item = item,
          .track = track,
          .epoch = epoch,
          .kind = kind};
}

ShardPiece Piece(uint64_t epoch, int64_t item, int64_t bytes) {
  ShardPiece piece;
  piece.id = BucketId({.run = epoch, .src = 1});
  piece.read.item = item;
  piece.bytes = bytes;
  return piece;
}

DeliveredItem Delivered(int64_t epoch, int64_t item, std::vector<int64_t> shape = {2, 3}) {
  DeliveredItem delivered;
  delivered.epoch = epoch;
  delivered.item = item;
  delivered.dtype = DType::kF32;
  delivered.shape = std::move(shape);
  return delivered;
}

TEST(StageTraceTest, EachSlotHasATrackAndItemsHaveOne) {
  JoinedTraceLog log(0);
  std::optional<StageTrace> trace(std::in_place, &log, 16, 2, 2, INT64_MAX);
  trace->Stage(TraceKind::kStorageRead, 1, Piece(3, 8, 500), 10, 20);
  trace->Item(3, 8, 900, 5, 30);
  trace->Sample(40, 2, 1500);
  trace.reset();
  TraceEvent read = Span(TraceKind::kStorageRead, 2, 3, 8, 500, 10, 20);
  read.id = BucketId({.run = 3, .src = 1});
  read.has_id = true;
  EXPECT_THAT(EventsOf(&log), ElementsAre(read, Span(TraceKind::kItem, 0, 3, 8, 900, 5, 30),
                                          TraceEvent{.begin_ns = 40,
                                                     .end_ns = 40,
                                                     .bytes = 1500,
                                                     .count = 2,
                                                     .track = 0,
                                                     .kind = TraceKind::kStreamSample}));
  EXPECT_EQ(log.AddTrack("next"), 3);
  EXPECT_THAT(ChromeTrace(log), HasSubstr("\"stream 2, slot 1\""));
}

TEST(StageTraceTest, LaterEpochsAreLeftOut) {
  JoinedTraceLog log(0);
  std::optional<StageTrace> trace(std::in_place, &log, 16, 0, 1, 2);
  trace->Stage(TraceKind::kExchange, 0, Piece(2, 1, 1), 10, 20);
  trace->Item(2, 1, 1, 10, 20);
  trace->Item(1, 7, 1, 10, 20);
  trace->Sample(30, 1, 1);  // it would be of a later epoch, too
  EXPECT_EQ(trace->left_out(), 2);
  trace.reset();
  EXPECT_THAT(EventsOf(&log), ElementsAre(Span(TraceKind::kItem, 0, 1, 7, 1, 10, 20)));
}

TEST(ConsumerTraceTest, AnEpochLastsFromItsFirstWaitToTheNextOnes) {
  JoinedTraceLog log(0);
  std::optional<ConsumerTrace> trace(std::in_place, &log, 16, 1, 2, INT64_MAX, "device");
  trace->Wait(Delivered(0, 4), 10, 20);
  trace->Wait(Delivered(0, 5), 30, 40);
  trace->Wait(Delivered(1, 6), 50, 60);
  trace->End(70);
  trace->End(80);  // once
  trace.reset();
  EXPECT_THAT(EventsOf(&log), ElementsAre(Span(TraceKind::kConsumerWait, 0, 0, 4, 0, 10, 20),
                                          Span(TraceKind::kConsumerWait, 0, 0, 5, 0, 30, 40),
                                          Span(TraceKind::kEpoch, 1, 0, -1, 0, 10, 50),
                                          Span(TraceKind::kConsumerWait, 0, 1, 6, 0, 50, 60),
                                          Span(TraceKind::kEpoch, 1, 1, -1, 0, 50, 70)));
}

TEST(ConsumerTraceTest, ABufferCountsTheBytesOfItsItems) {
  JoinedTraceLog log(0);
  std::optional<ConsumerTrace> trace(std::in_place, &log, 16, 1, 2, 1, "device");
  trace->Consume(1, {Delivered(0, 4), Delivered(0, 5, {5})}, 10, 20);
  trace->Consume(1, {}, 20, 30);
  trace->Consume(0, {Delivered(1, 6)}, 30, 40);  // beyond the epochs that are recorded
  trace.reset();
  EXPECT_THAT(EventsOf(&log), ElementsAre(Span(TraceKind::kConsume, 3, 0, 4, 44, 10, 20)));
}

TEST(ConsumerTraceTest, EpochsThatAreNotRecordedHaveNoSpan) {
  JoinedTraceLog log(0);
  std::optional<ConsumerTrace> trace(std::in_place, &log, 16, 1, 1, 1, "device");
  trace->Wait(Delivered(1, 6), 50, 60);
  trace->End(70);
  EXPECT_EQ(trace->left_out(), 2);
  trace.reset();
  EXPECT_TRUE(EventsOf(&log).empty());
}

}  // namespace
}  // namespace sluice
