// The world's rank and size, and the fabric of tests that are not about time: a loaded machine does
// not reach its timeout.
#ifndef SLUICE_MPI_TESTS_PATIENT_FABRIC_H_
#define SLUICE_MPI_TESTS_PATIENT_FABRIC_H_

#include <mpi.h>

#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "sluice/mpi.h"

namespace sluice {

inline int WorldRank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

inline int WorldSize() {
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return size;
}

inline absl::StatusOr<std::unique_ptr<Fabric>> PatientMpiFabric(MPI_Comm comm) {
  MpiFabricOptions options;
  options.timeout = absl::Minutes(5);
  return MakeMpiFabric(comm, options);
}

}  // namespace sluice

#endif  // SLUICE_MPI_TESTS_PATIENT_FABRIC_H_
