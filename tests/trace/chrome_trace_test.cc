// The trace file, read by a JSON library: what viewers rely on.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "sluice/trace.h"
#include "trace/joined_log.h"
#include "trace/recorder.h"

namespace sluice {
namespace {

using ::nlohmann::json;
using ::testing::HasSubstr;

json EventsOf(const absl::StatusOr<std::string>& text) {
  EXPECT_TRUE(text.ok()) << text.status();
  if (!text.ok()) return json::array();
  return json::parse(*text).at("traceEvents");
}

// The events whose `key` is `value`.
std::vector<json> Where(const json& events, const std::string& key, const json& value) {
  std::vector<json> found;
  for (const json& event : events) {
    if (event.contains(key) && event.at(key) == value) found.push_back(event);
  }
  return found;
}

// A log with one recorder.
struct Log {
  explicit Log(int rank, int64_t capacity = 8) : log(rank), recorder(*log.AddRecorder(capacity)) {}

  JoinedTraceLog log;
  TraceRecorder& recorder;
};

std::unique_ptr<Log> OneSpan(int rank, int64_t begin_ns) {
  auto log = std::make_unique<Log>(rank);
  log->recorder.Span(TraceKind::kMove, BucketId({.run = 4, .window = 2, .src = 3, .dst = 7}), 5,
                     1 << 20, begin_ns, begin_ns + 1500);
  return log;
}

TEST(ChromeTrace, ASpanIsACompleteEventOnItsSlotsTrack) {
  const json events = EventsOf(ChromeTrace(OneSpan(3, 1'000'000'000)->log));
  const std::vector<json> spans = Where(events, "ph", "X");
  ASSERT_EQ(spans.size(), 1u);
  const json expected = {{"ph", "X"},
                         {"pid", 4},
                         {"tid", 6},
                         {"name", "move"},
                         {"cat", "bucket"},
                         {"ts", 0.0},
                         {"dur", 1.5},
                         {"args",
                          {{"bucket", "run 4 window 2 round 0 phase 0, rank 3 -> 7, n 0"},
                           {"bytes", 1 << 20},
                           {"run", 4},
                           {"window", 2}}}};
  EXPECT_EQ(spans[0], expected);
}

TEST(ChromeTrace, ProcessesAndThreadsHaveNames) {
  const json events = EventsOf(ChromeTrace(OneSpan(3, 0)->log));
  const std::vector<json> process = Where(events, "name", "process_name");
  ASSERT_EQ(process.size(), 1u);
  EXPECT_EQ(process[0].at("pid"), 4);
  EXPECT_EQ(process[0].at("args").at("name"), "rank 3");
  const std::vector<json> thread = Where(events, "name", "thread_name");
  ASSERT_EQ(thread.size(), 1u);
  EXPECT_EQ(thread[0].at("pid"), 4);
  EXPECT_EQ(thread[0].at("tid"), 6);
  EXPECT_EQ(thread[0].at("args").at("name"), "slot 5");
  EXPECT_TRUE(Where(events, "name", "process_labels").empty());
}

// Process 0 and thread 0 mean something else to viewers, and times below 0 nothing.
TEST(ChromeTrace, NumbersAreWhatViewersTake) {
  Log log(0);
  TraceRecorder& recorder = log.recorder;
  recorder.Sample(-900, 1, 64);
  recorder.Span(TraceKind::kFill, BucketId(), 0, 64, -1000, -400);
  for (const json& event : EventsOf(ChromeTrace(log.log))) {
    EXPECT_GT(event.at("pid"), 0);
    if (event.contains("tid")) {
      EXPECT_GT(event.at("tid"), 0);
    }
    if (event.at("ph") != "M") {
      EXPECT_GE(event.at("ts"), 0.0);
    }
  }
}

TEST(ChromeTrace, ASampleIsTwoCounters) {
  Log log(1);
  TraceRecorder& recorder = log.recorder;
  recorder.Sample(1000, 3, 4096);
  recorder.Sample(3500, 2, 1024);
  const json events = EventsOf(ChromeTrace(log.log));
  const std::vector<json> buckets = Where(events, "name", "buckets in flight");
  ASSERT_EQ(buckets.size(), 2u);
  const json expected = {{"ph", "C"},
                         {"pid", 2},
                         {"name", "buckets in flight"},
                         {"ts", 2.5},
                         {"args", {{"buckets", 2}}}};
  EXPECT_EQ(buckets[1], expected);
  const std::vector<json> bytes = Where(events, "name", "bytes in flight");
  ASSERT_EQ(bytes.size(), 2u);
  EXPECT_EQ(bytes[0].at("args").at("bytes"), 4096);
}

TEST(ChromeTrace, StagesHaveTheirNames) {
  Log log(0);
  TraceRecorder& recorder = log.recorder;
  recorder.Span(TraceKind::kFill, BucketId(), 0, 1, 0, 1);
  recorder.Span(TraceKind::kMove, BucketId(), 0, 1, 1, 2);
  recorder.Span(TraceKind::kDrain, BucketId(), 0, 1, 2, 2);
  const std::vector<json> spans = Where(EventsOf(ChromeTrace(log.log)), "ph", "X");
  ASSERT_EQ(spans.size(), 3u);
  EXPECT_EQ(spans[0].at("name"), "fill");
  EXPECT_EQ(spans[1].at("name"), "move");
  EXPECT_EQ(spans[2].at("name"), "drain");
  EXPECT_EQ(spans[2].at("dur"), 0.0);
}

TEST(ChromeTrace, DroppedEventsAreMentioned) {
  Log log(0, 1);
  TraceRecorder& recorder = log.recorder;
  for (int i = 0; i < 5; ++i) recorder.Sample(i, i, i);
  const std::vector<json> labels = Where(EventsOf(ChromeTrace(log.log)), "name", "process_labels");
  ASSERT_EQ(labels.size(), 1u);
  EXPECT_EQ(labels[0].at("args").at("labels"), "4 events were dropped");
}

TEST(ChromeTrace, RanksMeetOnOneClock) {
  const std::vector<TracePart> parts = {
      {.content = OneSpan(0, 5000)->log.Serialize(), .clock_offset_ns = 0, .label = "node \"a\""},
      {.content = OneSpan(1, 900000)->log.Serialize(), .clock_offset_ns = -893000, .label = ""},
      {.content = JoinedTraceLog(2).Serialize(), .clock_offset_ns = 0, .label = ""},
  };
  const json events = EventsOf(ChromeTrace(parts));
  const std::vector<json> spans = Where(events, "ph", "X");
  ASSERT_EQ(spans.size(), 2u);
  EXPECT_EQ(spans[0].at("ts"), 0.0);
  EXPECT_EQ(spans[1].at("ts"), 2.0);
  EXPECT_EQ(spans[1].at("pid"), 2);
  const std::vector<json> names = Where(events, "name", "process_name");
  ASSERT_EQ(names.size(), 3u);
  EXPECT_EQ(names[0].at("args").at("name"), "rank 0 (node \"a\")");
  EXPECT_EQ(names[2].at("args").at("name"), "rank 2");
}

TEST(ChromeTrace, NoPartsAreAnEmptyFile) {
  EXPECT_TRUE(EventsOf(ChromeTrace(std::vector<TracePart>())).empty());
}

TEST(ChromeTrace, BadPartsAreNamed) {
  const TracePart good = {
      .content = OneSpan(1, 0)->log.Serialize(), .clock_offset_ns = 0, .label = ""};
  const TracePart bad = {.content = "nonsense", .clock_offset_ns = 0, .label = ""};
  const absl::StatusOr<std::string> nonsense = ChromeTrace({good, bad});
  EXPECT_EQ(nonsense.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(nonsense.status().message(), HasSubstr("part 1"));
  const TracePart far = {.content = good.content, .clock_offset_ns = INT64_MIN, .label = ""};
  EXPECT_THAT(ChromeTrace({far}).status().message(), HasSubstr("clock offset"));
  const absl::StatusOr<std::string> twice = ChromeTrace({good, good});
  EXPECT_EQ(twice.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(twice.status().message(), HasSubstr("rank 1 comes twice"));
}

}  // namespace
}  // namespace sluice
