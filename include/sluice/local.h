// All ranks of a job in one process: for tests, examples and tools. No MPI.
//
//   absl::StatusOr<std::vector<std::unique_ptr<Fabric>>> fabrics = MakeLocalFabric(4);
//   // On four threads: Session::Create(std::move((*fabrics)[rank]), options)
#ifndef SLUICE_LOCAL_H_
#define SLUICE_LOCAL_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "sluice/fabric.h"

namespace sluice {

// One fabric for each rank, in rank order; all ranks are on one node. Each fabric, and each session
// made from one, is used by a thread of its own, because collective calls wait for the other ranks.
// A fabric may be destroyed before the others. InvalidArgument if `ranks` is not 1 .. 4096.
absl::StatusOr<std::vector<std::unique_ptr<Fabric>>> MakeLocalFabric(int ranks);

}  // namespace sluice

#endif  // SLUICE_LOCAL_H_
