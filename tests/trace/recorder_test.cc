// Recording: what is kept, and what is dropped and counted.
#include "trace/recorder.h"

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "trace/serialize.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;

TraceContent ContentOf(const TraceRecorder& recorder) {
  absl::StatusOr<TraceContent> content = DecodeTrace(recorder.Serialize());
  EXPECT_TRUE(content.ok()) << content.status();
  return content.ok() ? *content : TraceContent();
}

TEST(TraceRecorder, KeepsWhatItIsTold) {
  TraceRecorder recorder(3, 8);
  const BucketId id({.run = 2, .src = 3, .dst = 1});
  recorder.Sample(90, 1, 4096);
  recorder.Span(TraceKind::kMove, id, 5, 1000, 100, 250);
  EXPECT_EQ(recorder.size(), 2);
  EXPECT_EQ(recorder.dropped(), 0);
  const TraceContent content = ContentOf(recorder);
  EXPECT_EQ(content.rank, 3);
  EXPECT_THAT(
      content.events,
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
  TraceRecorder recorder(0, 3);
  for (int i = 0; i < 10; ++i) recorder.Span(TraceKind::kFill, BucketId(), i, 1, i, i + 1);
  recorder.Sample(20, 1, 1);
  EXPECT_EQ(recorder.capacity(), 3);
  EXPECT_EQ(recorder.size(), 3);
  EXPECT_EQ(recorder.dropped(), 8);
  const TraceContent content = ContentOf(recorder);
  EXPECT_EQ(content.dropped, 8);
  ASSERT_EQ(content.events.size(), 3u);
  EXPECT_EQ(content.events[2].count, 2);
}

TEST(TraceRecorder, SamplesOnlyChanges) {
  TraceRecorder recorder(0, 16);
  recorder.Sample(1, 0, 0);
  recorder.Sample(2, 0, 0);
  recorder.Sample(3, 1, 0);
  recorder.Sample(4, 1, 8);
  recorder.Sample(5, 1, 8);
  EXPECT_EQ(recorder.size(), 3);
}

TEST(TraceRecorder, ForgetsWhenCleared) {
  TraceRecorder recorder(0, 1);
  recorder.Sample(1, 1, 1);
  recorder.Sample(2, 2, 2);
  EXPECT_EQ(recorder.dropped(), 1);
  recorder.Clear();
  EXPECT_EQ(recorder.size(), 0);
  EXPECT_EQ(recorder.dropped(), 0);
  recorder.Sample(3, 2, 2);  // the same as before, and still the first
  EXPECT_EQ(recorder.size(), 1);
  EXPECT_EQ(recorder.capacity(), 1);
}

TEST(TraceRecorderDeathTest, Arguments) {
  EXPECT_DEATH(TraceRecorder(0, 0), "at least one event");
  EXPECT_DEATH(TraceRecorder(-1, 1), "not negative");
  TraceRecorder recorder(0, 1);
  EXPECT_DEATH(recorder.Span(TraceKind::kFill, BucketId(), 0, 1, 5, 4), "ends before it begins");
  EXPECT_DEATH(recorder.Span(TraceKind::kFill, BucketId(), -1, 1, 4, 5), "has a slot");
}

}  // namespace
}  // namespace sluice
