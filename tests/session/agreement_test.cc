// What ranks learn when they compare.
#include "session/peers/agreement.h"

#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "session/base/backoff.h"
#include "session/world.h"

namespace sluice {
namespace {

using session_test::Rank;
using session_test::RunRanks;
using testing::HasSubstr;

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
    EXPECT_THAT(std::string(outcome.message()), HasSubstr(text));
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

TEST(AgreementTest, BadEverywhereIsEachRanksOwnError) {
  RunRanks(3, [](Rank& self) {
    Agreement agreement(self.fabric.get());
    Proposal proposal = Propose(1, 1);
    proposal.status = absl::InvalidArgumentError(absl::StrCat("mine: ", self.rank));
    EXPECT_EQ(Agree(&agreement, proposal), proposal.status);
  });
}

TEST(AgreementTest, PayloadsOfAllRanksComeOut) {
  RunRanks(4, [](Rank& self) {
    Agreement agreement(self.fabric.get());
    Proposal proposal = Propose(1, 1);
    const auto payload_of = [](int rank) {
      return std::string(static_cast<size_t>(rank) * Proposal::kMaxPayloadBytes / 3,
                         static_cast<char>(rank));
    };
    proposal.payload = payload_of(self.rank);
    ASSERT_TRUE(Agree(&agreement, proposal).ok());
    for (int rank = 0; rank < 4; ++rank) EXPECT_EQ(agreement.payload(rank), payload_of(rank));
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

}  // namespace
}  // namespace sluice
