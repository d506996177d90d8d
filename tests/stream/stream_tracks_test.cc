// How a stream begins: the headers of its objects, what ranks agree on, and its tracks in a trace.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "main/fails.h"
#include "session/shard/stage_trace.h"
#include "session/stream/consumer_trace.h"
#include "session/stream/object_headers.h"
#include "session/stream/stream_start.h"
#include "stream/scripted_source.h"

namespace sluice {
namespace {

using stream_test::FlakySource;
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
  EXPECT_THAT(ChromeTrace(log), testing::HasSubstr("\"stream 2, slot 1\""));
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

const absl::Status kBusy = absl::UnavailableError("busy");

class ObjectHeadersTest : public testing::Test {
 protected:
  // An object with a header of `header_bytes`, whose first reads end as `outcomes` say.
  void Add(size_t header_bytes, std::vector<absl::Status> outcomes) {
    std::string header(header_bytes, ' ');
    for (size_t i = 0; i < 8; ++i) {
      header[i] = static_cast<char>((header_bytes - 8) >> (8 * i) & 0xFF);
    }
    header.replace(8, 2, "{}");
    const std::string content = absl::StrCat(header, std::string(14, 'x'));
    headers_.push_back(header);
    files_.push_back({absl::StrCat("shard-", files_.size(), ".safetensors"),
                      static_cast<int64_t>(content.size())});
    objects_.push_back({content, std::move(outcomes)});
  }
  absl::StatusOr<std::vector<std::string>> Read() {
    FlakySource source(objects_);
    return ReadObjectHeaders(&source, files_, ItemFormat::kSafetensors, retry_, stop_);
  }

  std::vector<std::string> headers_;
  std::vector<ObjectFile> files_;
  std::vector<FlakySource::Object> objects_;
  RetryOptions retry_ = {.attempts_max = 3, .backoff = absl::Milliseconds(1)};
  WorkStop stop_ = false;
};

TEST_F(ObjectHeadersTest, WhatPassesIsReadAgain) {
  Add(64, {});
  Add(64, {kBusy, kBusy});
  Add(64 << 10, {kBusy});
  // Longer than what is read of every file at first.
  Add(128 << 10, {absl::OkStatus(), kBusy});
  const auto headers = Read().value();
  EXPECT_EQ(headers, headers_);
}

TEST_F(ObjectHeadersTest, WhatDoesNotPassNamesTheFile) {
  Add(64, {});
  Add(64, {kBusy, kBusy, kBusy});
  const absl::Status busy = Read().status();
  EXPECT_THAT(
      busy, Fails(absl::StatusCode::kUnavailable, "shard-1.safetensors: gave up after 3 attempts"));
  objects_[1].outcomes = {absl::PermissionDeniedError("not for you")};
  EXPECT_THAT(Read().status(), Fails(absl::StatusCode::kPermissionDenied, "shard-1.safetensors"));
}

TEST_F(ObjectHeadersTest, AnEmptyFileNamesTheFile) {
  Add(64, {});
  files_.push_back({"empty.safetensors", 0});
  objects_.push_back({""});
  const absl::Status status = Read().status();
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("empty.safetensors"));
}

StreamOptions Options() { return {.selection = {1, 2, 90}}; }

TEST(StreamStartTest, RequestsRoundTrip) {
  StreamOptions options = Options();
  options.order.cursor = std::string(3000, 'c');
  const auto request = ParseStreamRequest(StreamRequestText(options), 4).value();
  EXPECT_EQ(request.selection, options.selection);
  options.order.cursor.back() = 'd';
  EXPECT_NE(ParseStreamRequest(StreamRequestText(options), 4)->cursor_hash, request.cursor_hash);
}

TEST(StreamStartTest, ARequestOfAnotherBuildNamesItsRank) {
  const std::string good = StreamRequestText(Options());
  std::string other = good;
  other[0] = static_cast<char>(other[0] + 1);
  for (const std::string& text : {std::string(), std::string("abc"), good + "x", other}) {
    const absl::Status status = ParseStreamRequest(text, 4).status();
    EXPECT_THAT(status, Fails(absl::StatusCode::kFailedPrecondition, "rank 4 runs another build"));
  }
}

TEST(StreamStartTest, ACursorOfAnotherBlockSizeIsRefused) {
  StreamOptions options = Options();
  options.order.shuffle = true;
  options.order.shuffle_block_items = 16;
  std::vector<StreamRequest> requests(1);
  const auto start = PlanStream(options, 100, 0, 0, requests).value();
  EXPECT_EQ(start.order.block_items, 16);
  requests[0].cursor = start.order.ToText();
  EXPECT_TRUE(PlanStream(options, 100, 0, 0, requests).ok());
  EXPECT_THAT(std::string(PlanStream(options, 101, 0, 0, requests).status().message()),
              HasSubstr("the cursor is of another stream"));
  options.order.shuffle_block_items = 8;
  const std::string message(PlanStream(options, 100, 0, 0, requests).status().message());
  EXPECT_THAT(message, HasSubstr("block 16"));
  EXPECT_THAT(message, HasSubstr("in blocks of 8"));
  options.order.shuffle_block_items = absl::nullopt;
  EXPECT_FALSE(PlanStream(options, 100, 0, 0, requests).ok());
}

TEST(StreamStartTest, RefusesMorePositionsThanThereCanBe) {
  StreamOptions options = Options();
  const std::vector<StreamRequest> requests(1);
  options.order.epochs = (int64_t{1} << 24) - 1;
  absl::Status status = PlanStream(options, int64_t{1} << 39, 0, 0, requests).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("epochs"));
  status = PlanStream(options, StreamPlan::kItemsMax + 1, 0, 0, requests).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("items are too many"));
  EXPECT_TRUE(PlanStream(options, int64_t{1} << 30, 0, 0, requests).ok());
}

}  // namespace
}  // namespace sluice
