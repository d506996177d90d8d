// Rounds: all end together, a failure reaches all, and silence has a name. Time is what the test
// says.
#include "session/peers/rounds.h"

#include <cstdint>
#include <string>

#include "base/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "main/fails.h"
#include "session/world.h"

namespace sluice {
namespace {

using session_test::Rank;
using session_test::RunRanks;
using testing::HasSubstr;

// Polls until it ends; every poll is an interval later than the one before.
absl::Status PollToTheEnd(Rounds* rounds, bool done, const absl::Status& own) {
  absl::StatusOr<bool> over = false;
  for (int64_t now_ns = MonotonicNs(); over.ok() && !*over; now_ns += Rounds::kIntervalNs) {
    over = rounds->Poll({.done = done}, own, now_ns);
  }
  return over.status();
}

TEST(RoundsTest, AFailureReachesThoseThatWorkAndThoseThatAreDone) {
  RunRanks(4, [&](Rank& self) {
    Rounds rounds(self.fabric.get(), "Test", absl::Hours(100000));
    const bool fails = self.rank == 2;
    const absl::Status status = PollToTheEnd(
        &rounds, self.rank == 1, fails ? absl::DataLossError("a torn page") : absl::OkStatus());
    EXPECT_THAT(status, Fails(absl::StatusCode::kDataLoss, "a torn page"));
    if (!fails) {
      EXPECT_THAT(std::string(status.message()), HasSubstr("Test failed on rank 2"));
    }
    EXPECT_FALSE(rounds.out_of_step());
    self.meet();
  });
}

TEST(RoundsTest, AMoveOfOneIsHeardByAll) {
  for (const int mover : {-1, 1}) {
    RunRanks(3, [&](Rank& self) {
      Rounds rounds(self.fabric.get(), "Test", absl::Hours(100000));
      const int64_t begin_ns = rounds.moved_ns();
      const Rounds::Standing standing = {.done = true, .moved = self.rank == mover};
      absl::StatusOr<bool> over = false;
      int64_t now_ns = MonotonicNs();
      for (; over.ok() && !*over; ++now_ns) over = rounds.Poll(standing, absl::OkStatus(), now_ns);
      EXPECT_TRUE(over.ok()) << over.status();
      EXPECT_EQ(rounds.moved_ns() > begin_ns, mover >= 0);
      self.meet();
    });
  }
}

TEST(RoundsTest, SilenceIsNamed) {
  RunRanks(3, [&](Rank& self) {
    Rounds rounds(self.fabric.get(), "Test", absl::Seconds(60));
    if (self.rank != 2) {
      EXPECT_FALSE(*rounds.Poll({.done = true}, absl::OkStatus(), MonotonicNs()));
    }
    self.meet();
    if (self.rank != 2) {
      const absl::Status status =
          rounds.Poll({.done = true}, absl::OkStatus(), MonotonicNs() + 61'000'000'000).status();
      EXPECT_THAT(status,
                  Fails(absl::StatusCode::kDeadlineExceeded, "Test: no word from rank 2 for 1m"));
      EXPECT_TRUE(rounds.out_of_step());
    }
    self.meet();
  });
}

}  // namespace
}  // namespace sluice
