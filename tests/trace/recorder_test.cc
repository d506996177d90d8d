// Recording: what is kept, and what is dropped and counted.
#include "trace/recorder.h"

#include <cstddef>
#include <cstdint>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plan/bucket.h"
#include "trace/trace_event.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;

TEST(TraceRecorder, KeepsWhatItIsTold) {
  TraceRecorder recorder(8);
  const BucketId id({.run = 2, .src = 3, .dst = 1});
  recorder.Sample(90, 1, 4096);
  recorder.Span(TraceKind::kMove, id, 5, 1000, 100, 250);
  EXPECT_EQ(recorder.dropped(), 0);
  EXPECT_THAT(
      recorder.events(),
      ElementsAre(
          TraceEvent{
              .begin_ns = 90, .end_ns = 90, .bytes = 4096, .count = 1, .kind = TraceKind::kSample},
          TraceEvent{.id = id,
                     .begin_ns = 100,
                     .end_ns = 250,
                     .bytes = 1000,
                     .count = 5,
                     .kind = TraceKind::kMove}));
}

TEST(TraceRecorder, DropsAndCountsWhatFindsNoRoom) {
  TraceRecorder recorder(3);
  for (int i = 0; i < 10; ++i) recorder.Span(TraceKind::kFill, BucketId(), i, 1, i, i + 1);
  recorder.Sample(20, 1, 1);
  EXPECT_EQ(recorder.capacity(), 3);
  EXPECT_EQ(recorder.dropped(), 8);
  ASSERT_EQ(recorder.events().size(), 3u);
  EXPECT_EQ(recorder.events()[2].count, 2);
}

TEST(TraceRecorder, SamplesOnlyChanges) {
  TraceRecorder recorder(16);
  recorder.Sample(1, 0, 0);
  recorder.Sample(2, 0, 0);
  recorder.Sample(3, 1, 0);
  recorder.Sample(4, 1, 8);
  recorder.Sample(5, 1, 8);
  EXPECT_EQ(recorder.events().size(), 3u);
}

TEST(TraceRecorder, KeepsWhatAStreamDoes) {
  TraceRecorder recorder(8);
  const BucketId id({.run = 1, .n = 4});
  recorder.Span(TraceKind::kConsume, 2, {.item = 7, .epoch = 1}, 1000, 100, 250);
  recorder.Span(TraceKind::kStorageRead, 3, {.item = 8, .epoch = 1}, id, 500, 120, 121);
  recorder.Span(TraceKind::kConsumerWait, 2, {}, 0, 250, 250);
  recorder.StreamSample(130, 5, 3, 4096);
  EXPECT_THAT(
      recorder.events(),
      ElementsAre(
          TraceEvent{.begin_ns = 100,
                     .end_ns = 250,
                     .bytes = 1000,
                     .item = 7,
                     .track = 2,
                     .epoch = 1,
                     .kind = TraceKind::kConsume},
          TraceEvent{.id = id,
                     .begin_ns = 120,
                     .end_ns = 121,
                     .bytes = 500,
                     .item = 8,
                     .track = 3,
                     .epoch = 1,
                     .has_id = true,
                     .kind = TraceKind::kStorageRead},
          TraceEvent{.begin_ns = 250, .end_ns = 250, .track = 2, .kind = TraceKind::kConsumerWait},
          TraceEvent{.begin_ns = 130,
                     .end_ns = 130,
                     .bytes = 4096,
                     .count = 3,
                     .track = 5,
                     .kind = TraceKind::kStreamSample}));
}

TEST(TraceRecorder, SamplesOfStreamsAndTransfersDoNotMeet) {
  TraceRecorder recorder(16);
  recorder.Sample(1, 2, 8);
  recorder.StreamSample(2, 0, 2, 8);
  recorder.Sample(3, 2, 8);
  recorder.StreamSample(4, 0, 2, 8);
  EXPECT_EQ(recorder.events().size(), 2u);
  recorder.StreamSample(5, 1, 2, 8);  // another stream's
  EXPECT_EQ(recorder.events().size(), 3u);
}

TEST(TraceRecorder, ForgetsWhenCleared) {
  TraceRecorder recorder(1);
  recorder.Sample(1, 1, 1);
  recorder.Sample(2, 2, 2);
  EXPECT_EQ(recorder.dropped(), 1);
  recorder.Clear();
  EXPECT_EQ(recorder.events().size(), 0u);
  EXPECT_EQ(recorder.dropped(), 0);
  recorder.Sample(3, 2, 2);  // the same as before, and still the first
  EXPECT_EQ(recorder.events().size(), 1u);
  EXPECT_EQ(recorder.capacity(), 1);
}

TEST(TraceRecorderDeathTest, Arguments) {
  EXPECT_DEATH(TraceRecorder(0), "at least one event");
  TraceRecorder recorder(1);
  EXPECT_DEATH(recorder.Span(TraceKind::kFill, BucketId(), 0, 1, 5, 4), "ends before it begins");
  EXPECT_DEATH(recorder.Span(TraceKind::kFill, BucketId(), -1, 1, 4, 5), "has a slot");
  EXPECT_DEATH(recorder.Span(TraceKind::kConsume, BucketId(), 0, 1, 4, 5), "has a slot");
  EXPECT_DEATH(recorder.Span(TraceKind::kItem, 0, {}, 1, 5, 4), "ends before it begins");
  EXPECT_DEATH(recorder.Span(TraceKind::kItem, -1, {}, 1, 4, 5), "has a track");
  EXPECT_DEATH(recorder.Span(TraceKind::kMove, 0, {}, 1, 4, 5), "has a track");
  EXPECT_DEATH(recorder.Span(TraceKind::kStreamSample, 0, {}, 1, 4, 5), "has a track");
  EXPECT_DEATH(recorder.StreamSample(0, -1, 1, 1), "has a track");
}

}  // namespace
}  // namespace sluice
