// A rank of the session tests whose job is an MPI communicator.
#ifndef SLUICE_MPI_TESTS_SESSION_MPI_RANK_H_
#define SLUICE_MPI_TESTS_SESSION_MPI_RANK_H_

#include <mpi.h>

#include <cstdint>

#include "gtest/gtest.h"
#include "patient_fabric.h"
#include "session/specs.h"
#include "session/world.h"
#include "sluice/mpi.h"

namespace sluice::session_test {

// Ranks meet on `comm` itself, of which the session has a duplicate. Throws on error.
inline Rank MpiRank(MPI_Comm comm) {
  Rank self;
  MPI_Comm_rank(comm, &self.rank);
  MPI_Comm_size(comm, &self.size);
  self.fabric = PatientMpiFabric(comm).value();
  self.direct = WantsDirect();
  self.meet = [comm] { MPI_Barrier(comm); };
  return self;
}

// Calls run(self, job, seed) with a random job for each seed from 1 on. `kind`: a number that sets
// the jobs apart from those of other tests.
template <typename RunRank>
void RunRandomJobs(int seeds, uint64_t kind, const RunRank& run) {
  for (uint64_t seed = 1; seed <= static_cast<uint64_t>(seeds); ++seed) {
    Rank self = MpiRank(MPI_COMM_WORLD);
    const auto size = static_cast<uint64_t>(self.size);
    run(self, MakeRandomJob(seed * 100 + size + kind, self.size), seed);
    ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed;
  }
}

}  // namespace sluice::session_test

#endif  // SLUICE_MPI_TESTS_SESSION_MPI_RANK_H_
