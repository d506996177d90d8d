// Agreements of ranks, and when a rank that waits asks others and gives up.
#include "session/peers/agreement.h"

#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "session/base/backoff.h"
#include "session/peers/stall_clock.h"
#include "session/world.h"

namespace sluice {
namespace {

using session_test::Rank;
using session_test::RunRanks;

// ---- What ranks learn when they compare.

Proposal Propose(int64_t depth, int64_t hash) {
  Proposal proposal;
  proposal.call = "Compile";
  proposal.values = {{"the depth", depth}, {"the contents", hash, false}};
  return proposal;
}

absl::Status Agree(Agreement* agreement, Proposal proposal,
                   absl::Duration timeout = absl::Minutes(2)) {
  absl::Status status = agreement->Start(std::move(proposal), timeout);
  if (!status.ok()) return status;
  Backoff backoff;
  while (!agreement->Poll()) backoff.Pause();
  return agreement->outcome();
}

// Expects one outcome on all of `size` ranks.
void ExpectOutcome(int size, absl::StatusCode code, const std::string& text,
                   const std::function<Proposal(int)>& proposal) {
  RunRanks(size, [&](Rank& self) {
    Agreement agreement(self.fabric.get());
    const absl::Status outcome = Agree(&agreement, proposal(self.rank));
    EXPECT_EQ(outcome.code(), code) << outcome;
    EXPECT_THAT(std::string(outcome.message()), testing::HasSubstr(text));
    EXPECT_FALSE(agreement.out_of_step());
    // The next one starts afresh.
    EXPECT_TRUE(Agree(&agreement, Propose(1, 1)).ok());
  });
}

TEST(AgreementTest, EqualValuesAgree) {
  for (int size : {1, 2, 5, 16}) {
    ExpectOutcome(size, absl::StatusCode::kOk, "", [](int) { return Propose(-7, 1); });
  }
}

TEST(AgreementTest, NamesTheValueAndWhoHasIt) {
  ExpectOutcome(5, absl::StatusCode::kFailedPrecondition,
                "ranks disagree on the depth in Compile: 8 on ranks 0, 1, 3, 4, 4 on rank 2",
                [](int rank) { return Propose(rank == 2 ? 4 : 8, rank); });
}

TEST(AgreementTest, HashesAreNotShown) {
  ExpectOutcome(4, absl::StatusCode::kFailedPrecondition,
                "ranks disagree on the contents in Compile: ranks 0-2 differ from rank 3",
                [](int rank) { return Propose(1, rank == 3 ? 1 : 2); });
}

TEST(AgreementTest, OneRanksBadInputReachesAll) {
  ExpectOutcome(4, absl::StatusCode::kNotFound, "Compile failed on ranks 1, 3: no file 1",
                [](int rank) {
                  Proposal proposal = Propose(rank, rank);
                  if (rank % 2 == 1) {
                    proposal.status = absl::NotFoundError(absl::StrCat("no file ", rank));
                  }
                  return proposal;
                });
}

TEST(AgreementTest, LongMessagesAreCut) {
  ExpectOutcome(2, absl::StatusCode::kInternal, std::string(400, 'x'), [](int rank) {
    Proposal proposal = Propose(1, 1);
    if (rank == 0) proposal.status = absl::InternalError(std::string(5000, 'x'));
    return proposal;
  });
}

TEST(AgreementTest, DifferentCallsAreNamed) {
  ExpectOutcome(3, absl::StatusCode::kFailedPrecondition,
                "ranks make different calls: Compile on ranks 1, 2, Start on rank 0", [](int rank) {
                  Proposal proposal = Propose(1, 1);
                  if (rank == 0) proposal.call = "Start";
                  return proposal;
                });
}

TEST(AgreementTest, SilentRanksAreNamed) {
  RunRanks(5, [](Rank& self) {
    self.meet();  // all threads run
    if (self.rank == 1 || self.rank == 3 || self.rank == 4) return;
    Agreement agreement(self.fabric.get());
    const absl::Status outcome = Agree(&agreement, Propose(1, 1), absl::Seconds(1));
    EXPECT_EQ(outcome.code(), absl::StatusCode::kDeadlineExceeded);
    EXPECT_EQ(outcome.message(), "ranks 1, 3, 4 did not call Compile within 1s");
    EXPECT_TRUE(agreement.out_of_step());
  });
}

TEST(AgreementTest, GivesUpWhenTold) {
  RunRanks(3, [](Rank& self) {
    if (self.rank == 1) return;
    Agreement agreement(self.fabric.get());
    EXPECT_EQ(agreement.number(), 0);
    ASSERT_TRUE(agreement.Start(Propose(1, 1), absl::InfiniteDuration()).ok());
    EXPECT_EQ(agreement.number(), 1);
    while (agreement.FindMissing() != std::vector<int>{1}) std::this_thread::yield();
    EXPECT_FALSE(agreement.Poll());
    agreement.GiveUp(absl::Seconds(5), ErrorText("and so on"));
    EXPECT_TRUE(agreement.Poll());
    EXPECT_EQ(agreement.outcome(), MakeError(absl::StatusCode::kDeadlineExceeded, RankInWords(1),
                                             " did not call Compile within 5s; and so on"));
    EXPECT_TRUE(agreement.out_of_step());
    EXPECT_THAT(agreement.FindMissing(), testing::IsEmpty());
  });
}

TEST(AgreementTest, DoesNotGiveUpWhatIsThere) {
  RunRanks(2, [](Rank& self) {
    Agreement agreement(self.fabric.get());
    ASSERT_TRUE(agreement.Start(Propose(1, 1), absl::InfiniteDuration()).ok());
    self.meet();
    while (!agreement.FindMissing().empty()) std::this_thread::yield();
    agreement.GiveUp(absl::Seconds(5));
    ASSERT_TRUE(agreement.Poll());
    EXPECT_TRUE(agreement.outcome().ok()) << agreement.outcome();
    EXPECT_FALSE(agreement.out_of_step());
    self.meet();
  });
}

TEST(AgreementTest, WaitsForEverIfTold) {
  RunRanks(2, [](Rank& self) {
    Agreement agreement(self.fabric.get());
    if (self.rank == 1) self.meet();
    ASSERT_TRUE(agreement.Start(Propose(1, 1), absl::InfiniteDuration()).ok());
    if (self.rank == 0) {
      EXPECT_FALSE(agreement.Poll()) << agreement.outcome();
      self.meet();
    }
    while (!agreement.Poll()) continue;
    EXPECT_TRUE(agreement.outcome().ok()) << agreement.outcome();
  });
}

// ---- When a rank asks others, and when it gives up.

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
