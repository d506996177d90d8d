// The error of a read that failed for good, and how many requests there are before it comes to one.
#include "session/shard/read_failure.h"

#include <string>

#include "absl/strings/cord.h"
#include "gtest/gtest.h"
#include "session/shard/request_pace.h"

namespace sluice {
namespace {

constexpr absl::string_view kPayload = "sluice/read-failure";

TEST(ReadFailureTest, TheMessageSaysWhichBytesAndWhy) {
  EXPECT_EQ(
      MakeReadFailure(absl::StatusCode::kUnavailable, {"s.bin", 100, 50, 1, "no answer"}).message(),
      "bytes 100 to 149 of s.bin: gave up after 1 attempt: no answer");
  const absl::Status status =
      MakeReadFailure(absl::StatusCode::kDataLoss, {"s.bin", 0, 1, 4, "cut"});
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(status.message(), "bytes 0 to 0 of s.bin: gave up after 4 attempts: cut");
}

TEST(ReadFailureTest, TheFailureComesBackWhateverItsTexts) {
  const ReadFailure failure = {"a\n7\nb", int64_t{1} << 60, 5, 3, "line 1\nline 2"};
  const auto found = ReadFailureOf(MakeReadFailure(absl::StatusCode::kUnavailable, failure));
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->object, failure.object);
  EXPECT_EQ(found->offset, failure.offset);
  EXPECT_EQ(found->bytes, failure.bytes);
  EXPECT_EQ(found->attempts, failure.attempts);
  EXPECT_EQ(found->cause, failure.cause);
}

TEST(ReadFailureTest, OtherErrorsHaveNone) {
  EXPECT_FALSE(ReadFailureOf(absl::OkStatus()).has_value());
  absl::Status status = absl::UnavailableError("bytes 0 to 0 of s.bin: gave up");
  EXPECT_FALSE(ReadFailureOf(status).has_value());
  for (const char* damaged : {"", "1\n2\n3\n9\nshort", "1\n2\n3\n1", "x\n2\n3\n1\nab"}) {
    status.SetPayload(kPayload, absl::Cord(damaged));
    EXPECT_FALSE(ReadFailureOf(status).has_value()) << damaged;
  }
  status.SetPayload(kPayload, absl::Cord("1\n2\n3\n1\nab"));
  EXPECT_TRUE(ReadFailureOf(status).has_value());
}

// Answers that many requests.
void Answer(RequestPace* pace, int requests) {
  for (int i = 0; i < requests; ++i) pace->Answered();
}

TEST(RequestPaceTest, WhatIsLateHalvesWhatWasUnderWay) {
  RequestPace pace(100);
  EXPECT_EQ(pace.limit(), 100);
  EXPECT_TRUE(pace.Late(10, 32, 50));
  EXPECT_EQ(pace.limit(), 16);
  EXPECT_FALSE(pace.Late(49, 16, 60)) << "it was begun before the limit fell";
  EXPECT_EQ(pace.limit(), 16);
  EXPECT_TRUE(pace.Late(50, 3, 70));
  EXPECT_EQ(pace.limit(), 1);
  EXPECT_TRUE(pace.Late(70, 1, 80));
  EXPECT_EQ(pace.limit(), 1);
}

TEST(RequestPaceTest, ALateRequestNeverRaisesTheLimit) {
  RequestPace pace(100);
  ASSERT_TRUE(pace.Late(0, 20, 1));
  EXPECT_TRUE(pace.Late(2, 90, 3));
  EXPECT_EQ(pace.limit(), 10);
}

TEST(RequestPaceTest, AsManyAnswersAsTheLimitRaiseItByAnEighth) {
  RequestPace pace(19);
  ASSERT_TRUE(pace.Late(0, 32, 1));
  Answer(&pace, 15);
  EXPECT_EQ(pace.limit(), 16);
  Answer(&pace, 1);
  EXPECT_EQ(pace.limit(), 18);
  Answer(&pace, 17);
  EXPECT_EQ(pace.limit(), 18);
  Answer(&pace, 1);
  EXPECT_EQ(pace.limit(), 19);  // the most
  Answer(&pace, 100);
  EXPECT_EQ(pace.limit(), 19);
}

TEST(RequestPaceTest, AFallForgetsTheAnswersBefore) {
  RequestPace pace(8);
  ASSERT_TRUE(pace.Late(0, 8, 1));
  Answer(&pace, 3);
  ASSERT_TRUE(pace.Late(1, 4, 2));
  Answer(&pace, 1);
  EXPECT_EQ(pace.limit(), 2);
  Answer(&pace, 1);
  EXPECT_EQ(pace.limit(), 3);
}

}  // namespace
}  // namespace sluice
