// Connections between processes: random halves, and ranks that do not fit together.
#include <mpi.h>

#include <cstdint>

#include "gtest/gtest.h"
#include "session/connect_job.h"
#include "session/job.h"
#include "session_mpi_rank.h"

namespace sluice::session_test {
namespace {

TEST(ConnectMpiTest, RandomHalves) {
  for (uint64_t seed = 1; seed <= 15; ++seed) {
    Rank self = MpiRank(MPI_COMM_WORLD);
    const ConnectJob job = MakeConnectJob(seed * 10 + static_cast<uint64_t>(self.size), self.size);
    const auto session = OpenSession(self, job.options);
    oracle::Dice dice(seed * 100 + static_cast<uint64_t>(self.rank));
    ConnectMemory memory(job, self.rank, &dice);
    // A rank that asks for what nobody has.
    ConnectSpec wrong = memory.spec();
    if (self.rank == self.size - 1) {
      wrong.targets.push_back(
          {{"nobody has this", {1}, DType::kF32, MakeLayout({1}, {self.rank}, "R")}});
      wrong.late_targets = true;
    }
    const absl::Status refused = Connect(session.get(), wrong).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kNotFound) << refused;
    const auto connection = Connect(session.get(), memory.spec()).value();
    for (uint64_t round = 1; round <= 2; ++round) {
      memory.Prepare(round);
      const auto run = connection->Start({.version = static_cast<int64_t>(round)}).value();
      ASSERT_TRUE(run.Wait().ok());
      EXPECT_EQ(memory.Check(round), "") << "rank " << self.rank << " seed " << seed;
    }
    EXPECT_TRUE(connection->Drop().ok());
    EXPECT_TRUE(session->Close().ok());
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace sluice::session_test
