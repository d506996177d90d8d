// Ranks that are late and answer are waited for, over MPI, until they are silent or patience ends.
// What is left under way cannot be taken back, so this is a program of its own.
#include <mpi.h>

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "main/fails.h"
#include "session/job.h"
#include "session_mpi_rank.h"
#include "transport/deadline.h"

namespace sluice::session_test {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;

// That ranks which are held up by a busy machine are not taken for silent.
constexpr absl::Duration kTimeout = absl::Seconds(2);
constexpr absl::Duration kLate = absl::Seconds(3);

SessionOptions Options(absl::Duration patience) {
  SessionOptions options;
  options.bucket_bytes = 64 << 10;
  options.timeout = kTimeout;
  options.patience = patience;
  return options;
}

// Answers for longer than a timeout, and does nothing else.
void BeLate(Session* session) {
  const Deadline late(kLate);
  while (!late.Passed()) {
    const absl::Status status = session->Poll();
    ASSERT_TRUE(status.ok()) << status;
  }
}

TEST(SessionPatienceMpiTest, LateRanksAreWaitedFor) {
  Rank self = MpiRank(MPI_COMM_WORLD);
  const auto session = OpenSession(self, Options(absl::InfiniteDuration()));
  const int last = self.size - 1;
  if (self.rank == last) BeLate(session.get());
  Bound bound = CompileBound(session.get(), AllToAll(self.size, 128 << 10));
  // The first run, which compares views, and a later one.
  for (uint64_t round = 1; round <= 2; ++round) {
    if (self.rank == last) BeLate(session.get());
    const auto run = StartRun(session.get(), &bound, round);
    if (self.rank == 0) {
      // Before the last rank has started: it is given up without harm.
      while (!run.WaitFor(absl::Milliseconds(100)).value()) continue;
    }
    const absl::Status status = run.Wait();
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(bound.memory.Check(round), "");
  }
  EXPECT_TRUE(session->Close().ok());
}

TEST(SessionPatienceMpiTest, PatienceEnds) {
  Rank self = MpiRank(MPI_COMM_WORLD);
  const auto session = OpenSession(self, Options(kLate));
  // Lives as long as the process: operations on it may stay under way.
  static auto* const bound = new Bound(CompileBound(session.get(), AllToAll(self.size, 128 << 10)));
  RunOnce(session.get(), bound, 1);
  absl::Status status;
  if (self.rank == 0) {
    status = AwaitError(session.get());
  } else {
    const auto run = StartRun(session.get(), bound, 2);
    status = run.Wait();
  }
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("saw no progress for 3s"),
                    AnyOf(SaysOf(0, "has not started run 2"),
                          HasSubstr("rank 0, which holds up others, is late"))));
  const absl::Status closed = session->Close();
  EXPECT_TRUE(closed.ok()) << closed;
}

TEST(SessionPatienceMpiTest, SilenceAfterAnAnswerEndsIt) {
  Rank self = MpiRank(MPI_COMM_WORLD);
  const auto session = OpenSession(self, Options(absl::InfiniteDuration()));
  static auto* const bound = new Bound(CompileBound(session.get(), AllToAll(self.size, 128 << 10)));
  RunOnce(session.get(), bound, 1);
  if (self.rank == 0) {
    BeLate(session.get());
    self.meet();
    EXPECT_TRUE(absl::IsDeadlineExceeded(AwaitError(session.get())));
  } else {
    const auto run = StartRun(session.get(), bound, 2);
    const absl::Status status = run.Wait();
    EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                AnyOf(AllOf(HasSubstr("rank 0 has not answered for"),
                            HasSubstr("before, it said that it has not started run 2")),
                      HasSubstr("held up by rank 0, which does not answer")));
    self.meet();
  }
  self.meet();
}

}  // namespace
}  // namespace sluice::session_test
