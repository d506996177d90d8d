// Objects of unknown length: attempts, pauses, and what an error says.
#include "session/shard/read_text.h"

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "main/fails.h"
#include "main/own_folder.h"
#include "session/shard/next_attempt.h"
#include "storage/asked_pause.h"
#include "storage/nginx_server.h"

namespace sluice {
namespace {

class ReadWithRetriesTest : public testing::Test {
 protected:
  // Ends as `outcomes` say, one after the other.
  absl::Status Read(std::vector<absl::Status> outcomes) {
    attempts_ = 0;
    return ReadWithRetries("index", retry_, stop_, [&] {
      stop_ = attempts_ + 1 == stop_at_;
      return outcomes.at(static_cast<size_t>(attempts_++));
    });
  }

  RetryOptions retry_ = {.attempts_max = 3, .backoff = absl::Milliseconds(1)};
  WorkStop stop_ = false;
  int stop_at_ = 0;  // the attempt amid which it is told to stop
  int attempts_ = 0;
};

const absl::Status kBusy = absl::UnavailableError("busy");

TEST_F(ReadWithRetriesTest, WhatPassesIsTriedAgain) {
  EXPECT_TRUE(Read({kBusy, kBusy, absl::OkStatus()}).ok());
  EXPECT_EQ(attempts_, 3);
}

TEST_F(ReadWithRetriesTest, TheLastErrorSaysHowManyThereWere) {
  const absl::Status status = Read({kBusy, kBusy, kBusy});
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_EQ(status.message(), "index: gave up after 3 attempts: busy");
}

TEST_F(ReadWithRetriesTest, WhatStaysIsNotTriedAgain) {
  EXPECT_EQ(Read({absl::NotFoundError("gone")}), absl::NotFoundError("gone"));
  const absl::Status status = Read({kBusy, absl::DataLossError("short")});
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_EQ(attempts_, 2);
}

TEST_F(ReadWithRetriesTest, APauseThatAServerAsksForIsNoFailedAttempt) {
  const absl::Status asked = WithAskedPause(kBusy, absl::Milliseconds(2));
  EXPECT_TRUE(Read({asked, asked, asked, kBusy, kBusy, absl::OkStatus()}).ok());
}

TEST_F(ReadWithRetriesTest, AStopEndsThePause) {
  retry_.backoff = absl::Hours(1);
  stop_at_ = 1;
  EXPECT_TRUE(absl::IsCancelled(Read({kBusy})));
  EXPECT_EQ(attempts_, 1);
}

TEST(NextAttemptTest, PausesDoubleUntilNoAttemptIsLeft) {
  const RetryOptions retry = {.attempts_max = 100, .backoff = absl::Milliseconds(10)};
  AskedPauses asked;
  EXPECT_EQ(NextAttempt(retry, kBusy, 1, &asked), absl::Milliseconds(10));
  EXPECT_EQ(NextAttempt(retry, kBusy, 2, &asked), absl::Milliseconds(20));
  EXPECT_EQ(NextAttempt(retry, kBusy, 3, &asked), absl::Milliseconds(40));
  EXPECT_EQ(NextAttempt(retry, kBusy, 11, &asked), absl::Milliseconds(10 * 1024));
  EXPECT_EQ(NextAttempt(retry, kBusy, 99, &asked), absl::Milliseconds(10 * 1024)) << "no longer";
  EXPECT_EQ(NextAttempt(retry, kBusy, 100, &asked), absl::nullopt);
  EXPECT_EQ(asked.count, 0);
}

TEST(NextAttemptTest, PausesThatAServerAsksForAreNoFailedAttempts) {
  const RetryOptions retry = {
      .attempts_max = 2, .backoff = absl::Milliseconds(10), .request_timeout = absl::Seconds(5)};
  const auto busy_for = [](absl::Duration pause) { return WithAskedPause(kBusy, pause); };
  AskedPauses asked;
  EXPECT_EQ(NextAttempt(retry, busy_for(absl::Milliseconds(1)), 1, &asked), retry.backoff);
  EXPECT_EQ(NextAttempt(retry, busy_for(absl::Seconds(2)), 2, &asked), absl::Seconds(2));
  EXPECT_EQ(NextAttempt(retry, kBusy, 3, &asked), retry.backoff) << "the first that failed";
  EXPECT_EQ(NextAttempt(retry, busy_for(absl::Seconds(2)), 4, &asked), absl::Seconds(2));
  EXPECT_EQ(NextAttempt(retry, busy_for(absl::Seconds(2)), 5, &asked), absl::nullopt)
      << "six seconds in all";
  EXPECT_EQ(NextAttempt(retry, kBusy, 6, &asked), absl::nullopt);
}

class FetchTextTest : public testing::Test {
 protected:
  FetchTextTest() { std::ofstream(path_ + "/index") << "all of it"; }
  absl::StatusOr<WholeObject> Fetch(const std::string& uri, int64_t bytes_max = 100) {
    const absl::StatusOr<SourceAddress> address = ParseSourceAddress(uri);
    if (!address.ok()) return address.status();
    return FetchText(*address, "index", bytes_max, OpenOptions(), retry_, stop_);
  }

  const OwnFolder folder_;
  const std::string path_ = folder_.path().string();
  RetryOptions retry_ = {.attempts_max = 3, .backoff = absl::Milliseconds(1)};
  WorkStop stop_ = false;
};

TEST_F(FetchTextTest, OfAFileWithItsIdentity) {
  const auto object = Fetch("file:" + path_).value();
  EXPECT_EQ(object.text, "all of it");
  ASSERT_TRUE(object.identity.has_value());
  EXPECT_EQ(object.identity->bytes, 9);
  EXPECT_TRUE(absl::IsResourceExhausted(Fetch("file:" + path_, 8).status()));
  std::filesystem::remove(path_ + "/index");
  const absl::Status gone = Fetch("mmap:" + path_).status();
  EXPECT_THAT(gone, Fails(absl::StatusCode::kNotFound, path_ + "/index"));
}

TEST_F(FetchTextTest, OverHttp) {
  absl::StatusOr<std::unique_ptr<NginxServer>> server = NginxServer::Make();
  if (absl::IsUnavailable(server.status())) GTEST_SKIP() << server.status();
  ASSERT_TRUE(server.ok()) << server.status();
  (*server)->Write("index", "all of it");
  const auto object = Fetch((*server)->Url("burst/2")).value();
  EXPECT_EQ(object.text, "all of it");
  EXPECT_FALSE(object.identity.has_value());
  const absl::Status busy = Fetch((*server)->Url("code/503")).status();
  EXPECT_THAT(busy, Fails(absl::StatusCode::kUnavailable, "index: gave up after 3 attempts"));
  const absl::Status gone = Fetch((*server)->Url("code/404")).status();
  EXPECT_THAT(gone, Fails(absl::StatusCode::kNotFound, "code/404/index"));
  std::vector<int> codes;
  for (const NginxServer::Request& request : (*server)->Stop()) codes.push_back(request.status);
  // The first request is the server's maker's.
  codes.erase(codes.begin(), codes.end() - std::min<ptrdiff_t>(7, std::ssize(codes)));
  EXPECT_THAT(codes, testing::ElementsAre(503, 503, 200, 503, 503, 503, 404));
}

}  // namespace
}  // namespace sluice
