// Ranks that stop calling, over MPI. What is left under way cannot be taken back, so this is a
// program of its own, and the failing parts come last.
#include <mpi.h>

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "session/job.h"
#include "session_mpi_rank.h"

namespace sluice::session_test {
namespace {

using testing::HasSubstr;

SessionOptions Impatient() {
  SessionOptions options;
  options.bucket_bytes = 64 << 10;
  options.timeout = absl::Seconds(3);
  return options;
}

void ExpectNamed(const absl::Status& status, const std::string& text) {
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(text));
}

TEST(SessionSilenceMpiTest, ARankThatNeverCompiles) {
  Rank self = MpiRank(MPI_COMM_WORLD);
  const auto session = OpenSession(self, Impatient());
  if (self.rank != 0) {
    const absl::Status status = session->Compile(Ring(self.size, 1)).status();
    ExpectNamed(status, "rank 0 did not call Compile");
    EXPECT_TRUE(session->Close().ok());
  }
  self.meet();
  if (self.rank == 0) ExpectNamed(AwaitError(session.get()), "rank 0 did not call Compile");
  self.meet();
}

TEST(SessionSilenceMpiTest, ARankThatStartsAndNeverPolls) {
  Rank self = MpiRank(MPI_COMM_WORLD);
  const auto session = OpenSession(self, Impatient());
  // Lives as long as the process: operations on it may stay under way.
  static auto* const bound = new Bound(CompileBound(session.get(), AllToAll(self.size, 128 << 10)));
  RunOnce(session.get(), bound, 1);
  const auto run = StartRun(session.get(), bound, 2);
  if (self.rank != 0) ExpectNamed(run.Wait(), "saw no progress for 3s");
  self.meet();
  if (self.rank == 0) ExpectNamed(AwaitError(session.get()), "saw no progress for 3s");
  self.meet();
}

}  // namespace
}  // namespace sluice::session_test
