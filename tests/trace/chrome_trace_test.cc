// The trace file of transfers and of streams, read by a JSON library: what viewers rely on.
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "plan/bucket.h"
#include "sluice/trace.h"
#include "trace/joined_log.h"
#include "trace/recorder.h"

namespace sluice {
namespace {

using ::nlohmann::json;
using ::testing::ElementsAre;
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
                           {"window", 2},
                           {"stage", "move"}}}};
  EXPECT_EQ(spans[0], expected);
}

TEST(ChromeTrace, AStageIsCalledAfterItsTensors) {
  Log log(0);
  const int32_t name = log.log.NumberOf("layers.\"0\"");
  EXPECT_EQ(log.log.NumberOf("b"), name + 1);
  EXPECT_EQ(log.log.NumberOf("layers.\"0\""), name);
  log.recorder.Span(TraceKind::kFill, BucketId(), 0, 1, 10, 20, {.tensor = name, .tensors = 1});
  log.recorder.Span(TraceKind::kMove, BucketId(), 0, 1, 20, 30,
                    {.tensor = name + 1, .tensors = 3, .from = 6, .to = 2});
  log.recorder.Span(TraceKind::kDrain, BucketId(), 0, 1, 30, 40, {.tensor = 2, .tensors = 1});
  const std::vector<json> spans = Where(EventsOf(ChromeTrace(log.log)), "ph", "X");
  ASSERT_EQ(spans.size(), 3u);
  EXPECT_EQ(spans[0].at("name"), "fill layers.\"0\"");
  EXPECT_EQ(spans[0].at("args").at("tensor"), "layers.\"0\"");
  EXPECT_EQ(spans[0].at("args").at("tensors"), 1);
  EXPECT_FALSE(spans[0].at("args").contains("from"));
  EXPECT_EQ(spans[1].at("name"), "move b + 2");
  EXPECT_EQ(spans[1].at("args").at("from"), 6);
  EXPECT_EQ(spans[1].at("args").at("to"), 2);
  EXPECT_EQ(spans[2].at("name"), "drain") << "of a name that the log lacks";
}

// Rank 0 sends to rank 1, which hands on to rank 2; rank 3 gives rank 0 its contribution.
TEST(ChromeTrace, ArrowsLeadFromSendersToReceivers) {
  const BucketId id({.run = 1, .src = 0, .dst = 1});
  Log logs[] = {Log(0), Log(1), Log(2), Log(3)};
  logs[0].recorder.Span(TraceKind::kMove, id, 4, 1, 1000, 9000);
  logs[1].recorder.Span(TraceKind::kMove, id, 5, 1, 3000, 5000, {.from = 0});
  logs[2].recorder.Span(TraceKind::kMove, id, 6, 1, 4000, 4000, {.from = 1});
  logs[3].recorder.Span(TraceKind::kMove, id, 7, 1, 2000, 2500, {.to = 0});
  // Its sender is in no file.
  logs[3].recorder.Span(TraceKind::kMove, BucketId({.run = 2}), 7, 1, 6000, 6500, {.from = 9});
  std::vector<TracePart> parts;
  parts.reserve(4);
  for (const Log& log : logs) {
    parts.push_back({.content = log.log.Serialize(), .clock_offset_ns = 0, .label = ""});
  }
  const json events = EventsOf(ChromeTrace(parts));
  const std::vector<json> starts = Where(events, "ph", "s");
  const std::vector<json> ends = Where(events, "ph", "f");
  ASSERT_EQ(starts.size(), 3u);
  ASSERT_EQ(ends.size(), 3u);
  std::set<json> arrows;
  std::set<json> ids;
  for (size_t i = 0; i < 3; ++i) {
    for (const char* key : {"id", "name", "cat"}) EXPECT_EQ(starts[i].at(key), ends[i].at(key));
    EXPECT_EQ(ends[i].at("bp"), "e");
    ids.insert(starts[i].at("id"));
    arrows.insert(json::array({starts[i].at("pid"), starts[i].at("tid"), starts[i].at("ts"),
                               ends[i].at("pid"), ends[i].at("tid"), ends[i].at("ts")}));
  }
  EXPECT_EQ(ids.size(), 3u);
  EXPECT_EQ(
      arrows,
      (std::set<json>{{1, 5, 0.0, 2, 6, 3.999}, {2, 6, 2.0, 3, 7, 3.0}, {4, 8, 1.0, 1, 5, 7.999}}));
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

// {thread: its name}
std::map<int, std::string> ThreadNames(const json& events) {
  std::map<int, std::string> names;
  for (const json& event : Where(events, "name", "thread_name")) {
    names[event.at("tid")] = event.at("args").at("name");
  }
  return names;
}

TEST(StreamTrace, SpansAreOnTracksWithNames) {
  JoinedTraceLog log(3);
  TraceRecorder& recorder = *log.AddRecorder(16);
  const int slot = log.AddTrack("slot 0");
  const int consumer = log.AddTrack("the \"consumer\"");
  recorder.Span(TraceKind::kStorageRead, slot, {.item = 7, .epoch = 2},
                BucketId({.run = 4, .window = 2, .src = 3, .dst = 7}), 4096, 1000, 3500);
  recorder.Span(TraceKind::kConsume, consumer, {.item = 7, .epoch = 2}, 4096, 4000, 5000);
  recorder.Span(TraceKind::kConsumerWait, consumer, {}, 0, 2000, 4000);
  const json events = EventsOf(ChromeTrace(log));
  const std::map<int, std::string> names = ThreadNames(events);
  EXPECT_EQ(names, (std::map<int, std::string>{{1, "slot 0"}, {2, "the \"consumer\""}}));
  const std::vector<json> spans = Where(events, "ph", "X");
  ASSERT_EQ(spans.size(), 3u);
  const json read = {{"ph", "X"},
                     {"pid", 4},
                     {"tid", 1},
                     {"name", "storage_read"},
                     {"cat", "stream"},
                     {"ts", 0.0},
                     {"dur", 2.5},
                     {"args",
                      {{"bucket", "run 4 window 2 round 0 phase 0, rank 3 -> 7, n 0"},
                       {"bytes", 4096},
                       {"item", 7},
                       {"epoch", 2}}}};
  EXPECT_EQ(spans[0], read);
  EXPECT_EQ(spans[1].at("tid"), 2);
  EXPECT_FALSE(spans[1].at("args").contains("bucket"));
  EXPECT_EQ(spans[2].at("args"), (json{{"bytes", 0}}));
}

TEST(StreamTrace, KindsHaveTheirNames) {
  JoinedTraceLog log(0);
  TraceRecorder& recorder = *log.AddRecorder(16);
  const int track = log.AddTrack("track");
  int64_t now_ns = 0;
  for (const TraceKind kind :
       {TraceKind::kEpoch, TraceKind::kConsume, TraceKind::kConsumerWait, TraceKind::kStorageRead,
        TraceKind::kDeviceCopy, TraceKind::kExchange}) {
    recorder.Span(kind, track, {}, 1, now_ns, now_ns + 1);
    ++now_ns;
  }
  for (const TraceKind kind : {TraceKind::kFill, TraceKind::kMove, TraceKind::kDrain}) {
    recorder.Span(kind, BucketId(), 0, 1, now_ns, now_ns);
  }
  std::vector<std::string> names;
  const std::vector<json> spans = Where(EventsOf(ChromeTrace(log)), "ph", "X");
  for (const json& span : spans) names.push_back(span.at("name"));
  EXPECT_THAT(names, ElementsAre("epoch", "consume", "consumer_wait", "storage_read", "device_copy",
                                 "exchange", "fill", "move", "drain"));
  EXPECT_EQ(spans.back().at("dur"), 0.0);
}

// Two that overlap, and one of another rank: each is a pair with an id that no other has.
TEST(StreamTrace, ItemsAreAsynchronousPairs) {
  std::vector<TracePart> parts;
  for (const int rank : {0, 1}) {
    JoinedTraceLog log(rank);
    TraceRecorder& recorder = *log.AddRecorder(16);
    const int items = log.AddTrack("items");
    recorder.Span(TraceKind::kItem, items, {.item = 5, .epoch = 0}, 10, 1000, 9000);
    if (rank == 0) recorder.Span(TraceKind::kItem, items, {.item = 6, .epoch = 0}, 20, 2000, 4000);
    parts.push_back({.content = log.Serialize(), .clock_offset_ns = 0, .label = ""});
  }
  const json events = EventsOf(ChromeTrace(parts));
  const std::vector<json> begins = Where(events, "ph", "b");
  const std::vector<json> ends = Where(events, "ph", "e");
  ASSERT_EQ(begins.size(), 3u);
  ASSERT_EQ(ends.size(), 3u);
  EXPECT_TRUE(Where(events, "ph", "X").empty());
  std::set<std::string> ids;
  for (size_t i = 0; i < begins.size(); ++i) {
    ids.insert(begins[i].at("id").get<std::string>());
    for (const char* key : {"id", "cat", "name", "pid", "tid"}) {
      EXPECT_EQ(begins[i].at(key), ends[i].at(key)) << key;
    }
    EXPECT_EQ(begins[i].at("name"), "item");
  }
  EXPECT_EQ(ids.size(), 3u);
  EXPECT_EQ(begins[1].at("ts"), 1.0);
  EXPECT_EQ(ends[1].at("ts"), 3.0);
  EXPECT_EQ(begins[1].at("args"), (json{{"item", 6}, {"epoch", 0}, {"bytes", 20}}));
}

TEST(StreamTrace, SamplesAreCountersOfTheStream) {
  JoinedTraceLog log(1);
  TraceRecorder& recorder = *log.AddRecorder(16);
  const int train = log.AddTrack("train");
  recorder.StreamSample(1000, train, 3, 4096);
  recorder.StreamSample(2500, train, 2, 1024);
  const json events = EventsOf(ChromeTrace(log));
  const std::vector<json> buckets = Where(events, "name", "train: buckets in flight");
  const std::vector<json> bytes = Where(events, "name", "train: bytes in flight");
  ASSERT_EQ(buckets.size(), 2u);
  ASSERT_EQ(bytes.size(), 2u);
  const json expected = {{"ph", "C"},
                         {"pid", 2},
                         {"name", "train: buckets in flight"},
                         {"ts", 1.5},
                         {"args", {{"buckets", 2}}}};
  EXPECT_EQ(buckets[1], expected);
  EXPECT_EQ(bytes[0].at("args").at("bytes"), 4096);
  EXPECT_TRUE(ThreadNames(events).empty()) << "a counter is no track";
}

// A stream's tracks come after the slots of transfers, whatever their number.
TEST(StreamTrace, TracksDoNotMeetTheSlotsOfTransfers) {
  JoinedTraceLog log(0);
  TraceRecorder& transfers = *log.AddRecorder(16);
  TraceRecorder& stream = *log.AddRecorder(16);
  stream.Span(TraceKind::kConsume, log.AddTrack("consumer"), {}, 1, 0, 1);
  stream.Span(TraceKind::kEpoch, log.AddTrack("epochs"), {}, 1, 0, 1);
  transfers.Span(TraceKind::kMove, BucketId(), 5, 1, 0, 1);
  transfers.Span(TraceKind::kMove, BucketId(), 0, 1, 0, 1);
  EXPECT_EQ(
      ThreadNames(EventsOf(ChromeTrace(log))),
      (std::map<int, std::string>{{1, "slot 0"}, {6, "slot 5"}, {7, "consumer"}, {8, "epochs"}}));
}

TEST(StreamTrace, ATrackThatNobodyNamedHasItsNumber) {
  JoinedTraceLog log(0);
  log.AddRecorder(4)->Span(TraceKind::kConsume, 9, {}, 1, 0, 1);
  EXPECT_EQ(ThreadNames(EventsOf(ChromeTrace(log))), (std::map<int, std::string>{{10, "track 9"}}));
}

}  // namespace
}  // namespace sluice
