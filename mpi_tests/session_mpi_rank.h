// A rank of the session tests whose job is an MPI communicator.
#ifndef SLUICE_MPI_TESTS_SESSION_MPI_RANK_H_
#define SLUICE_MPI_TESTS_SESSION_MPI_RANK_H_

#include <mpi.h>

#include <utility>

#include "gtest/gtest.h"
#include "patient_fabric.h"
#include "session/world.h"
#include "sluice/mpi.h"

namespace sluice::session_test {

// Ranks meet on `comm` itself, of which the session has a duplicate.
inline Rank MpiRank(MPI_Comm comm) {
  Rank self;
  MPI_Comm_rank(comm, &self.rank);
  MPI_Comm_size(comm, &self.size);
  auto fabric = PatientMpiFabric(comm);
  EXPECT_TRUE(fabric.ok()) << fabric.status();
  if (fabric.ok()) self.fabric = *std::move(fabric);
  self.direct = WantsDirect();
  self.meet = [comm] { MPI_Barrier(comm); };
  return self;
}

}  // namespace sluice::session_test

#endif  // SLUICE_MPI_TESTS_SESSION_MPI_RANK_H_
