// Ranks that do not call, or stop calling: the others end, and say who and where.
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "main/fails.h"
#include "session/job.h"
#include "transport/deadline.h"

namespace sluice::session_test {
namespace {

using absl::StatusCode;
using testing::HasSubstr;

constexpr int kSize = 4;
constexpr int kSilent = 2;
// That ranks which are held up by a busy machine are not taken for silent.
constexpr absl::Duration kTimeout = absl::Seconds(2);

SessionOptions Impatient(absl::Duration timeout) {
  return {.bucket_bytes = 1024, .timeout = timeout};
}

TEST(SilenceTest, ARankThatNeverCreates) {
  RunRanks(kSize, [](Rank& self) {
    self.meet();  // all threads run
    if (self.rank == kSilent) return;
    const auto session = Session::Create(std::move(self.fabric), Impatient(kTimeout));
    EXPECT_THAT(session.status(),
                Fails(StatusCode::kDeadlineExceeded, "rank 2 did not call Create within 2s"));
  });
}

TEST(SilenceTest, ARankThatNeverStarts) {
  RunRanks(kSize, [](Rank& self) {
    const auto session = OpenSession(self, Impatient(kTimeout));
    Bound bound = CompileBound(session.get(), Ring(kSize, 1));
    bound.memory.Prepare(1);
    if (self.rank != kSilent) {
      const auto run = session->Start(bound.transfer, bound.memory.src(), bound.memory.dst());
      ASSERT_TRUE(run.ok());
      EXPECT_THAT(run->Wait(), Fails(StatusCode::kDeadlineExceeded, "rank 2 did not call Start"));
      EXPECT_TRUE(session->Close().ok());
    }
    self.meet();
    EXPECT_TRUE(bound.memory.Untouched(1));
  });
}

TEST(SilenceTest, ARankThatStartsAndNeverPolls) {
  RunRanks(kSize, [](Rank& self) {
    const auto session = OpenSession(self, Impatient(kTimeout));
    Bound bound = CompileBound(session.get(), AllToAll(kSize, 8192));
    RunOnce(session.get(), &bound, 1);
    const auto run = session->Start(bound.transfer, bound.memory.src(), bound.memory.dst()).value();
    if (self.rank != kSilent) {
      const absl::Status status = run.Wait();
      EXPECT_THAT(status, Fails(StatusCode::kDeadlineExceeded, "saw no progress for 2s"));
      // The oldest bucket, its stage and its ends: one of them is the silent rank.
      EXPECT_THAT(std::string(status.message()), HasSubstr("run 2 window 0 round"));
      EXPECT_THAT(std::string(status.message()), HasSubstr("moving"));
      EXPECT_THAT(std::string(status.message()),
                  testing::AnyOf(HasSubstr("rank 2 -> "), HasSubstr(" -> 2")));
      EXPECT_THAT(std::string(status.message()),
                  testing::AnyOf(HasSubstr("rank 2 has not answered"),
                                 HasSubstr("held up by rank 2, which does not answer")));
      EXPECT_TRUE(run.IsDone()) << "waiting would be in vain";
      EXPECT_FALSE(session->Poll().ok());
    }
    self.meet();
    if (self.rank == kSilent) {
      EXPECT_THAT(run.Wait(), Fails(StatusCode::kDeadlineExceeded, "saw no progress for 2s"));
    }
    // Sessions end, and memory goes, with operations under way.
  });
}

TEST(SilenceTest, RanksThatHadFinishedLearnOfItToo) {
  RunRanks(kSize, [](Rank& self) {
    const auto session = OpenSession(self, Impatient(kTimeout));
    Bound bound = CompileBound(session.get(), FromTo(0, 1));  // ranks 2 and 3 have nothing to do
    RunOnce(session.get(), &bound, 1);
    const auto run = session->Start(bound.transfer, bound.memory.src(), bound.memory.dst()).value();
    if (self.rank >= 2) {
      EXPECT_TRUE(run.Wait().ok());
    }
    if (self.rank == 0) {
      EXPECT_THAT(run.Wait(), Fails(StatusCode::kDeadlineExceeded, "rank 0 -> 1"));
    }
    self.meet();
    if (self.rank == 1) {
      EXPECT_THAT(run.Wait(), Fails(StatusCode::kDeadlineExceeded, "rank 0 failed"));
    }
    if (self.rank >= 2) {
      EXPECT_THAT(session->Poll(), Fails(StatusCode::kDeadlineExceeded, "rank 0 failed"));
      EXPECT_TRUE(run.Wait().ok()) << "it was done here";
      EXPECT_TRUE(session->Close().ok());
    }
  });
}

// Rank 3 waits for rank 2, which waits for rank 1, which has one slot and older runs to move. That
// takes longer than the timeout, as rank 0 has memory for one after the other, but it goes on.
TEST(SilenceTest, RanksThatWaitForOthersThatMoveHaveNotSeenAStall) {
  RunRanks(kSize, [](Rank& self) {
    constexpr int kOlderRuns = 12;
    const absl::Duration kPause = kTimeout / 8;
    SessionOptions options = Impatient(kTimeout);
    options.budget_buckets = 1;
    const auto session = OpenSession(self, options);
    std::vector<Bound> bounds;
    for (int i = 0; i < kOlderRuns; ++i)
      bounds.push_back(CompileBound(session.get(), FromTo(1, 0)));
    bounds.push_back(CompileBound(session.get(), FromTo(1, 2)));
    bounds.push_back(CompileBound(session.get(), FromTo(2, 3)));
    for (Bound& bound : bounds) {
      RunOnce(session.get(), &bound, 1);
      bound.memory.Prepare(2);
    }
    std::vector<sluice::Run> runs;
    for (Bound& bound : bounds) {
      const bool late = self.rank == 0;
      const std::vector<TensorView> none(1);
      runs.push_back(session
                         ->Start(bound.transfer, bound.memory.src(),
                                 late ? none : bound.memory.dst(), {.late_destinations = late})
                         .value());
    }
    for (size_t i = 0; i < kOlderRuns && self.rank == 0; ++i) {
      const Deadline pause(kPause);
      while (!pause.Passed()) ASSERT_TRUE(session->Poll().ok());
      ASSERT_TRUE(runs[i].Supply(0, bounds[i].memory.dst()[0]).ok());
    }
    for (size_t i = runs.size(); i-- > 0;) {
      ASSERT_EQ(runs[i].Wait(), absl::OkStatus());
      EXPECT_EQ(bounds[i].memory.Check(2), "");
    }
  });
}

TEST(SilenceTest, ACallerThatStaysAwayHasNotSeenAStall) {
  RunRanks(2, [](Rank& self) {
    const auto session = OpenSession(self, Impatient(kTimeout));
    Bound bound = CompileBound(session.get(), Ring(2, 8));
    RunOnce(session.get(), &bound, 1);
    bound.memory.Prepare(2);
    if (self.rank == 1) self.meet();
    const auto run = session->Start(bound.transfer, bound.memory.src(), bound.memory.dst()).value();
    if (self.rank == 0) {
      for (int i = 0; i < 100; ++i) ASSERT_TRUE(session->Poll().ok());
      // Computes for longer than the timeout, and looks again before the other rank has started.
      const Deadline back(kTimeout + absl::Milliseconds(10));
      while (!back.Passed()) continue;
      EXPECT_TRUE(session->Poll().ok());
      self.meet();
    }
    EXPECT_TRUE(run.Wait().ok());
    EXPECT_EQ(bound.memory.Check(2), "");
  });
}

}  // namespace
}  // namespace sluice::session_test
