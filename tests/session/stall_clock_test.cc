// When a rank asks others, and when it gives up.
#include "session/peers/stall_clock.h"

#include <cstdint>

#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

// Looks every second from `begin` on, and sees nothing; the second in which it is stalled.
int64_t SecondsUntilStalled(StallClock* clock, int64_t begin_ns) {
  for (int64_t second = 1;; ++second) {
    clock->NoteIdle(begin_ns + second * kSecond);
    if (clock->IsStalled()) return second;
    if (second > 100) return -1;
  }
}

TEST(StallClockTest, AsksAfterAnEighthAndGivesUpAfterTheTimeout) {
  StallClock clock(absl::Seconds(16), absl::InfiniteDuration());
  clock.NoteMove(0);
  clock.NoteIdle(2 * kSecond);
  EXPECT_FALSE(clock.IsTimeToAsk());
  clock.NoteIdle(2 * kSecond + 1);
  EXPECT_TRUE(clock.IsTimeToAsk());
  EXPECT_FALSE(clock.IsStalled());
  EXPECT_EQ(SecondsUntilStalled(&clock, 2 * kSecond), 15);
}

TEST(StallClockTest, AMoveBeginsAnew) {
  StallClock clock(absl::Seconds(16), absl::InfiniteDuration());
  clock.NoteMove(0);
  for (int64_t second = 1; second <= 16; ++second) clock.NoteIdle(second * kSecond);
  EXPECT_FALSE(clock.IsStalled());
  clock.NoteMove(17 * kSecond);
  EXPECT_FALSE(clock.IsTimeToAsk());
  EXPECT_EQ(SecondsUntilStalled(&clock, 17 * kSecond), 17);
}

TEST(StallClockTest, OthersThatMoveCount) {
  StallClock clock(absl::Seconds(16), absl::InfiniteDuration());
  clock.NoteMove(0);
  for (int64_t second = 1; second <= 60; ++second) {
    clock.NoteOthersMoved();
    clock.NoteIdle(second * kSecond);
    EXPECT_FALSE(clock.IsStalled());
  }
}

TEST(StallClockTest, LatenessIsWaitedForWithoutEnd) {
  StallClock clock(absl::Seconds(16), absl::InfiniteDuration());
  clock.NoteMove(0);
  for (int64_t second = 1; second <= 1000; ++second) {
    if (second % 10 == 0) clock.NoteLateness();
    clock.NoteIdle(second * kSecond);
    EXPECT_FALSE(clock.IsStalled());
  }
  // The last word came after 1000 seconds.
  EXPECT_EQ(SecondsUntilStalled(&clock, 1000 * kSecond), 16);
  EXPECT_EQ(clock.limit(), absl::Seconds(16));
}

TEST(StallClockTest, PatienceRunsFromTheLastProgress) {
  StallClock clock(absl::Seconds(16), absl::Seconds(40));
  clock.NoteMove(0);
  for (int64_t begin = 0; begin <= 120; begin += 40) {
    clock.NoteOthersMoved();
    for (int64_t second = begin + 1; second <= begin + 40; ++second) {
      clock.NoteLateness();
      clock.NoteIdle(second * kSecond);
      EXPECT_FALSE(clock.IsStalled()) << second;
    }
  }
  clock.NoteLateness();
  clock.NoteIdle(161 * kSecond);
  EXPECT_TRUE(clock.IsStalled());
  EXPECT_EQ(clock.limit(), absl::Seconds(40));
}

TEST(StallClockTest, LessPatienceThanTheTimeoutIsTheTimeout) {
  for (const absl::Duration patience : {absl::ZeroDuration(), absl::Seconds(16)}) {
    StallClock clock(absl::Seconds(16), patience);
    clock.NoteMove(0);
    for (int64_t second = 1; second <= 16; ++second) {
      clock.NoteLateness();
      clock.NoteIdle(second * kSecond);
      EXPECT_FALSE(clock.IsStalled()) << second;
    }
    clock.NoteIdle(17 * kSecond);
    EXPECT_TRUE(clock.IsStalled());
    EXPECT_EQ(clock.limit(), absl::Seconds(16));
  }
}

TEST(StallClockTest, ACallerThatWasAwayHasNotLooked) {
  StallClock clock(absl::Seconds(16), absl::InfiniteDuration());
  clock.NoteMove(0);
  clock.NoteIdle(3600 * kSecond);
  EXPECT_FALSE(clock.IsStalled());
  clock.NoteIdle(7200 * kSecond);
  EXPECT_FALSE(clock.IsStalled());
  // Each look counts two seconds, so that the ninth is past the timeout.
  for (int64_t hour = 3; hour <= 8; ++hour) clock.NoteIdle(3600 * kSecond * hour);
  EXPECT_FALSE(clock.IsStalled());
  clock.NoteIdle(3600 * kSecond * 9);
  EXPECT_TRUE(clock.IsStalled());
}

}  // namespace
}  // namespace sluice
