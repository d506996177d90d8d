// Several threads that record, and one that reads and clears meanwhile.
#include "trace/joined_log.h"

#include <atomic>
#include <cstdint>
#include <map>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "plan/bucket.h"
#include "trace/recorder.h"
#include "trace/serialize.h"

namespace sluice {
namespace {

TraceContent ContentOf(const TraceLog& log) {
  absl::StatusOr<TraceContent> content = DecodeTrace(log.Serialize());
  EXPECT_TRUE(content.ok()) << content.status();
  return content.ok() ? *content : TraceContent();
}

TEST(JoinedTraceLog, AddsUpItsRecorders) {
  JoinedTraceLog log(3);
  EXPECT_EQ(log.AddTrack("consumer"), 0);
  EXPECT_EQ(log.AddTrack("epochs"), 1);
  TraceRecorder& first = *log.AddRecorder(2);
  TraceRecorder& second = *log.AddRecorder(3);
  for (int i = 0; i < 5; ++i) first.Span(TraceKind::kMove, BucketId(), i, 1, i, i + 1);
  second.Span(TraceKind::kConsume, 0, {.item = 4, .epoch = 0}, 1, 0, 1);
  EXPECT_EQ(log.rank(), 3);
  EXPECT_EQ(log.capacity(), 5);
  EXPECT_EQ(log.size(), 3);
  EXPECT_EQ(log.dropped(), 3);
  const TraceContent content = ContentOf(log);
  EXPECT_EQ(content.rank, 3);
  EXPECT_EQ(content.dropped, 3);
  EXPECT_EQ(content.tracks, (std::vector<std::string>{"consumer", "epochs"}));
  ASSERT_EQ(content.events.size(), 3u);
  EXPECT_EQ(content.events[1].count, 1);
  EXPECT_EQ(content.events[2].item, 4);
}

TEST(JoinedTraceLog, ClearForgetsEventsAndKeepsTracks) {
  JoinedTraceLog log(0);
  TraceRecorder& recorder = *log.AddRecorder(1);
  const int track = log.AddTrack("consumer");
  recorder.Span(TraceKind::kConsume, track, {}, 1, 0, 1);
  recorder.Span(TraceKind::kConsume, track, {}, 1, 1, 2);
  log.Clear();
  EXPECT_EQ(log.size(), 0);
  EXPECT_EQ(log.dropped(), 0);
  EXPECT_TRUE(ContentOf(log).events.empty());
  recorder.Span(TraceKind::kConsume, track, {.item = 2}, 1, 2, 3);
  EXPECT_EQ(log.size(), 1);
  EXPECT_EQ(ContentOf(log).events[0].item, 2);
  EXPECT_EQ(ContentOf(log).tracks.size(), 1u);
}

// Records items 0, 1, 2, ... on `track` until told to stop.
void RecordUntil(const std::atomic<bool>& stop, int track, TraceRecorder* recorder) {
  for (int64_t i = 0; !stop.load(); ++i) {
    recorder->Span(TraceKind::kConsume, track, {.item = i, .epoch = track}, 2 * i, i, i + 1);
    recorder->StreamSample(i, track, static_cast<int>(i % 2), i);
  }
}

// What is read is whole, in order, and after a Clear nothing that was read before it.
TEST(JoinedTraceLog, ReadsAndClearsWhileOthersRecord) {
  JoinedTraceLog log(0);
  std::atomic<bool> stop = false;
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    TraceRecorder* const recorder = log.AddRecorder(256);
    const int track = log.AddTrack("thread");
    threads.emplace_back([&stop, track, recorder] { RecordUntil(stop, track, recorder); });
  }
  std::map<int, int64_t> cleared;  // {track: largest item before the last Clear}
  for (int round = 0; round < 60; ++round) {
    while (log.size() < 40) std::this_thread::yield();
    std::map<int, int64_t> last = cleared;
    const TraceContent content = ContentOf(log);
    for (const TraceEvent& event : content.events) {
      if (event.kind != TraceKind::kConsume) continue;
      ASSERT_EQ(event.bytes, 2 * event.item);
      ASSERT_EQ(event.epoch, event.track);
      if (last.count(event.track) > 0) {
        ASSERT_GT(event.item, last[event.track]);
      }
      last[event.track] = event.item;
    }
    cleared = last;
    log.Clear();
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

TEST(JoinedTraceLogDeathTest, Arguments) { EXPECT_DEATH(JoinedTraceLog(-1), "not negative"); }

TEST(JoinedTraceLog, LendsARecorderThatWasGivenBackAgain) {
  JoinedTraceLog log(0);
  TraceRecorder* const kept = log.AddRecorder(8);
  const int track = log.AddTrack("stream 0");
  for (int stream = 0; stream < 100; ++stream) {
    const LentRecorder stages = log.LendRecorder(8);
    const LentRecorder consumer = log.LendRecorder(8);
    EXPECT_NE(stages.get(), consumer.get());
    EXPECT_NE(stages.get(), kept);
    if (stream < 5) stages->Span(TraceKind::kItem, track, {stream, 0}, 1, 10, 20);
  }
  EXPECT_EQ(log.capacity(), 24);
  // What is recorded stays until it is cleared, whoever recorded it.
  EXPECT_EQ(log.size(), 5);
  const LentRecorder other = log.LendRecorder(9);
  EXPECT_EQ(log.capacity(), 33);
}

}  // namespace
}  // namespace sluice
