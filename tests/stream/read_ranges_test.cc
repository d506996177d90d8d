// Ranges that are read as a whole: retries, lasting errors, and the end by a stop.
#include "session/shard/read_ranges.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "main/fails.h"
#include "stream/scripted_source.h"

namespace sluice {
namespace {

using stream_test::FlakySource;

// No test waits for a second attempt after such a pause.
constexpr absl::Duration kForEver = absl::Hours(1);

const absl::Status kBusy = absl::UnavailableError("busy");

class ReadRangesTest : public testing::Test {
 protected:
  absl::Status Read(FlakySource* source, size_t objects) {
    std::vector<std::string> names;
    ranges_.clear();
    for (size_t i = 0; i < objects; ++i) {
      names.push_back(absl::StrCat("object-", i));
      ranges_.push_back({static_cast<int>(i), 1, 3, ""});
    }
    return ReadRanges(source, names, retry_, stop_, absl::MakeSpan(ranges_));
  }

  RetryOptions retry_ = {.backoff = absl::Milliseconds(1)};
  WorkStop stop_ = false;
  std::vector<RangeRead> ranges_;
};

TEST_F(ReadRangesTest, MoreThanAreReadAtOnce) {
  std::vector<FlakySource::Object> objects(2 * kRangesAtOnceMax + 3);
  for (size_t i = 0; i < objects.size(); ++i) objects[i].content = absl::StrCat(1000 + i);
  FlakySource source(objects);
  ASSERT_EQ(Read(&source, objects.size()), absl::OkStatus());
  for (size_t i = 0; i < objects.size(); ++i) {
    EXPECT_EQ(ranges_[i].text, objects[i].content.substr(1)) << i;
  }
}

TEST_F(ReadRangesTest, WhatPassesIsReadAgain) {
  FlakySource source({{"abcd", {kBusy}}, {"efgh"}, {"ijkl", {kBusy, kBusy}}});
  ASSERT_EQ(Read(&source, 3), absl::OkStatus());
  EXPECT_EQ(ranges_[0].text, "bcd");
  EXPECT_EQ(ranges_[1].text, "fgh");
  EXPECT_EQ(ranges_[2].text, "jkl");
  EXPECT_EQ(source.reads, 6);
}

TEST_F(ReadRangesTest, WhatDoesNotPassEndsAndNamesTheObject) {
  retry_.attempts_max = 2;
  FlakySource source({{"abcd"}, {"efgh", {kBusy, kBusy}}});
  EXPECT_THAT(Read(&source, 2),
              Fails(absl::StatusCode::kUnavailable, "object-1: gave up after 2 attempts: busy"));
}

TEST_F(ReadRangesTest, AnErrorThatStaysDoesNotWaitForOtherAttempts) {
  retry_.backoff = kForEver;
  FlakySource source({{"abcd", {kBusy}}, {"efgh", {absl::NotFoundError("gone")}}, {"", {}, true}});
  EXPECT_THAT(Read(&source, 3), Fails(absl::StatusCode::kNotFound, "object-1"));
}

TEST_F(ReadRangesTest, AStopEndsThePauseBeforeAnAttempt) {
  retry_.backoff = kForEver;
  FlakySource source({{"abcd", {kBusy}}});
  source.on_poll = [this](int) { stop_ = true; };
  const absl::Status status = Read(&source, 1);
  EXPECT_TRUE(absl::IsCancelled(status)) << status;
  EXPECT_EQ(source.reads, 1);
}

TEST_F(ReadRangesTest, AStopEndsReadsThatNobodyAnswers) {
  FlakySource source({{"", {}, true}, {"", {}, true}});
  source.on_poll = [this](int poll) { stop_ = poll > 3; };
  const absl::Status status = Read(&source, 2);
  EXPECT_TRUE(absl::IsCancelled(status)) << status;
}

}  // namespace
}  // namespace sluice
