// Closing after a failure, over MPI.
#include <mpi.h>

#include "gtest/gtest.h"
#include "session/failed_close.h"
#include "session_mpi_rank.h"

namespace sluice::session_test {
namespace {

TEST(FailedCloseMpiTest, OfARunThatOneRankDoesNotStart) {
  Rank self = MpiRank(MPI_COMM_WORLD);
  FailAndClose(self, Failing::kNeverStarts, false);
}

TEST(FailedCloseMpiTest, OfARunThatOneRankHasNoMemoryFor) {
  Rank self = MpiRank(MPI_COMM_WORLD);
  FailAndClose(self, Failing::kLateMemory, false);
}

}  // namespace
}  // namespace sluice::session_test
