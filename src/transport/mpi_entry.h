// Jobs of MPI, for code that has no MPI.
#ifndef SLUICE_SRC_TRANSPORT_MPI_ENTRY_H_
#define SLUICE_SRC_TRANSPORT_MPI_ENTRY_H_

#include <memory>

#include "absl/status/statusor.h"
#include "sluice/job.h"

namespace sluice {

struct MpiEntry {
  bool (*is_initialized)();
  // Initialises MPI unless that has been done.
  absl::StatusOr<std::unique_ptr<Job>> (*start)(const JobOptions& options);
};

}  // namespace sluice

// At no address in a program that does not link sluice::mpi, which asks the linker for it.
extern "C" [[gnu::weak]] const sluice::MpiEntry SluiceMpiEntry;

#endif  // SLUICE_SRC_TRANSPORT_MPI_ENTRY_H_
