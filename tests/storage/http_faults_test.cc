// Every way in which a server can go wrong becomes the right code, within its time, with nothing
// written outside a read's memory.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "main/fails.h"
#include "storage/http/http_fetch.h"
#include "storage/http/http_source.h"
#include "storage/nginx_server.h"
#include "storage/source_run.h"

namespace sluice {
namespace {

constexpr int64_t kBytes = 200'000;

class HttpFaults : public testing::Test {
 protected:
  void SetUp() override {
    absl::StatusOr<std::unique_ptr<NginxServer>> server = NginxServer::Make();
    if (absl::IsUnavailable(server.status())) GTEST_SKIP() << server.status();
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    content_ = SourceContent(9, kBytes);
    server_->Write("a.bin", content_);
  }
  void Make(const std::string& path, const HttpOptions& options = {}) {
    source_ = *MakeHttpSource(server_->Url(path), {"a.bin"}, options);
    run_ = std::make_unique<SourceRun>(source_.get());
  }
  // The outcome of one read.
  absl::Status Read(int64_t offset, int64_t bytes) {
    const uint64_t cookie = run_->Read(0, offset, bytes);
    if (!run_->UntilAllEnded()) return absl::UnknownError("no event");
    absl::Status outcome = run_->Outcome(cookie);
    if (outcome.ok()) {
      run_->ExpectBytes(cookie, absl::string_view(content_).substr(static_cast<size_t>(offset),
                                                                   static_cast<size_t>(bytes)));
    } else {
      EXPECT_THAT(std::string(outcome.message()),
                  testing::HasSubstr(
                      absl::StrCat("bytes ", offset, " to ", offset + bytes - 1, " of a.bin")));
    }
    run_->ExpectGuards();
    return outcome;
  }
  absl::StatusCode CodeOf(const std::string& path, const HttpOptions& options = {}) {
    Make(path, options);
    return Read(1000, 50'000).code();
  }

  std::unique_ptr<NginxServer> server_;
  std::string content_;
  std::unique_ptr<Source> source_;
  std::unique_ptr<SourceRun> run_;
};

TEST_F(HttpFaults, RightAnswersInOtherShapesAreTaken) {
  EXPECT_EQ(CodeOf("fault/right/"), absl::StatusCode::kOk);
  EXPECT_EQ(CodeOf("fault/chunked/"), absl::StatusCode::kOk);
  EXPECT_EQ(CodeOf("fault/total_unknown/"), absl::StatusCode::kOk);
}

TEST_F(HttpFaults, OtherBytesThanAskedForAreLost) {
  for (const std::string mode :
       {"shifted", "unsaid", "illegible", "gzip", "longer", "shorter", "chunked_longer"}) {
    EXPECT_EQ(CodeOf(absl::StrCat("fault/", mode, "/")), absl::StatusCode::kDataLoss) << mode;
  }
}

TEST_F(HttpFaults, AnObjectMustKeepItsSize) {
  Make("fault/resized/");
  EXPECT_TRUE(Read(0, 100).ok());
  EXPECT_TRUE(absl::IsDataLoss(Read(0, 100)));
  Make("plain/", {.object_bytes = {kBytes + 1}});
  EXPECT_TRUE(absl::IsDataLoss(Read(0, 100)));
}

TEST_F(HttpFaults, WhatBreaksOffMayBeTriedAgain) {
  for (const std::string mode : {"cut", "reset", "chunked_shorter"}) {
    EXPECT_EQ(CodeOf(absl::StrCat("fault/", mode, "/")), absl::StatusCode::kUnavailable) << mode;
  }
}

TEST_F(HttpFaults, SilenceEnds) {
  const HttpOptions options = {.stall_timeout_ns = 100'000'000};
  for (const std::string mode : {"silent", "stalled"}) {
    Make(absl::StrCat("fault/", mode, "/"), options);
    const absl::Status outcome = Read(0, 50'000);
    EXPECT_THAT(outcome, Fails(absl::StatusCode::kUnavailable, "nearly nothing came for 100 ms"));
  }
}

// What ends by silence makes room for what waits, though no socket stirs any more.
TEST_F(HttpFaults, SilenceEndsForThoseThatWaitToo) {
  Make("fault/silent/", {.connections_per_host = 2, .stall_timeout_ns = 50'000'000});
  std::vector<ReadOp> ops;
  ops.reserve(5);
  for (int i = 0; i < 5; ++i) ops.push_back(run_->Op(0, i, 1000));
  if (!run_->Finish(ops)) return;
  for (const ReadOp& op : ops) EXPECT_TRUE(absl::IsUnavailable(run_->Outcome(op.cookie)));
}

TEST_F(HttpFaults, DrippingEndsToo) {
  Make("fault/dripping/", {.timeout_ns = 300'000'000});
  EXPECT_THAT(Read(0, 50'000), Fails(absl::StatusCode::kUnavailable, "not done within 300 ms"));
}

// Readers that judge by themselves have no limit of time.
TEST_F(HttpFaults, DrippingIsAsGoodAsSilence) {
  Make("fault/dripping/", {.timeout_ns = INT64_MAX, .stall_timeout_ns = 300'000'000});
  const absl::Status outcome = Read(0, 50'000);
  EXPECT_THAT(outcome, Fails(absl::StatusCode::kUnavailable, "nearly nothing came for 300 ms"));
}

// A whole object has no limit of time, and comes with 50 bytes a second.
TEST_F(HttpFaults, DrippingEndsForWholeObjectsToo) {
  server_->Write("short.bin", content_.substr(0, 300));
  EXPECT_THAT(FetchHttpObject(server_->Url("fault/dripping/short.bin"), kBytes,
                              {.timeout_ns = INT64_MAX, .stall_timeout_ns = 1'000'000'000})
                  .status(),
              Fails(absl::StatusCode::kUnavailable, "1024 bytes/sec"));
}

TEST_F(HttpFaults, AnEndlessAnswerIsNotReadToItsEnd) {
  EXPECT_EQ(CodeOf("fault/endless/"), absl::StatusCode::kDataLoss);
  EXPECT_LT(source_->counters().bytes_read, 1 << 20);
  EXPECT_EQ(CodeOf("fault/endless_error/"), absl::StatusCode::kUnavailable);
  EXPECT_LT(source_->counters().bytes_read, 1 << 20);
}

TEST_F(HttpFaults, AHeadWithoutEndIsCalledOne) {
  for (const std::string mode : {"long_line", "long_head"}) {
    const std::string path = absl::StrCat("fault/", mode, "/");
    Make(path);
    for (const absl::Status& outcome :
         {Read(0, 1000), FetchHttpObject(server_->Url(path + "a.bin"), kBytes, {}).status()}) {
      EXPECT_THAT(outcome, Fails(absl::StatusCode::kResourceExhausted,
                                 testing::ContainsRegex("answer.* head")));
    }
  }
}

TEST_F(HttpFaults, ATrailerWithoutEndIsGivenUp) {
  Make("fault/long_trailer/");
  for (const absl::Status& outcome :
       {Read(0, kBytes),
        FetchHttpObject(server_->Url("fault/long_trailer/a.bin"), kBytes, {}).status()}) {
    EXPECT_TRUE(absl::IsResourceExhausted(outcome)) << outcome;
  }
}

TEST_F(HttpFaults, AServerWithoutRangesServesWholeObjectsOnly) {
  Make("whole/");
  EXPECT_TRUE(Read(0, kBytes).ok());
  EXPECT_EQ(source_->counters().bytes_read, kBytes);
  EXPECT_TRUE(absl::IsDataLoss(Read(0, kBytes - 1)));
  EXPECT_TRUE(absl::IsDataLoss(Read(1, kBytes - 1)));
  EXPECT_TRUE(absl::IsDataLoss(Read(0, kBytes + 1)));
  EXPECT_LT(source_->counters().bytes_read, 2 * kBytes) << "what is refused is not read";
}

// Which code is called what, http_response_test knows.
TEST_F(HttpFaults, CodesHaveTheirMeaning) {
  EXPECT_EQ(CodeOf("code/404/"), absl::StatusCode::kNotFound);
  EXPECT_EQ(CodeOf("code/302/"), absl::StatusCode::kFailedPrecondition);
}

TEST_F(HttpFaults, ABurstPasses) {
  Make("burst/3/");
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(Read(0, 1000), Fails(absl::StatusCode::kUnavailable, "after \"1\""));
  }
  EXPECT_TRUE(Read(0, 1000).ok());
  EXPECT_EQ(source_->counters().connections, 1);
}

TEST_F(HttpFaults, AServerThatGoesAwayIsUnavailable) {
  Make("delay/1/");
  EXPECT_TRUE(Read(0, 1000).ok());
  std::vector<ReadOp> ops;
  ops.reserve(20);
  for (int i = 0; i < 20; ++i) ops.push_back(run_->Op(0, i, 1000));
  ASSERT_TRUE(run_->Start(ops).ok());
  server_->Stop();
  ASSERT_TRUE(run_->UntilAllEnded());
  EXPECT_TRUE(absl::IsUnavailable(Read(0, 1000)));
}

// Good and bad reads side by side on few connections: none disturbs another.
TEST_F(HttpFaults, FaultsStayWithTheirReads) {
  const std::vector<std::string> names = {"plain/a.bin",         "fault/cut/a.bin",
                                          "fault/shifted/a.bin", "fault/reset/a.bin",
                                          "fault/endless/a.bin", "code/404/a.bin",
                                          "fault/longer/a.bin",  "fault/chunked_shorter/a.bin"};
  source_ = *MakeHttpSource(server_->Url(""), names, {.connections_per_host = 3});
  run_ = std::make_unique<SourceRun>(source_.get());
  std::vector<ReadOp> ops;
  ops.reserve(160);
  for (int i = 0; i < 160; ++i) {
    ops.push_back(run_->Op(i % 16 < 8 ? 0 : i % 8, int64_t{i} * 100, 20'000));
  }
  if (!run_->Finish(ops)) return;
  for (const ReadOp& op : ops) {
    if (op.object == 0) {
      run_->ExpectAll({&op, 1}, content_);
    } else {
      EXPECT_FALSE(run_->Outcome(op.cookie).ok()) << names[static_cast<size_t>(op.object)];
    }
  }
  run_->ExpectGuards();
}

}  // namespace
}  // namespace sluice
