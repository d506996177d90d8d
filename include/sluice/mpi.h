// A Fabric over an MPI communicator. The only public header that includes MPI.
#ifndef SLUICE_MPI_H_
#define SLUICE_MPI_H_

#include <mpi.h>

#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "sluice/fabric.h"

namespace sluice {

struct MpiFabricOptions {
  // Not set: ranks that report one host name, on one running system, share a node. N, from 1 on:
  // ranks k*N .. k*N+N-1 form node k, whatever their hosts (to plan as if for a larger machine).
  absl::optional<int> ranks_per_node = absl::nullopt;
  // How long the ranks may take to come together, here and in each OpenTransport. A rank that ends
  // before it has come is found by this only, and without its number: MPI does not tell which.
  absl::Duration timeout = absl::Seconds(30);
};

// Collective over `comm`, which is duplicated once and not used afterwards. MPI must be
// initialised. The calling thread must be one that may call MPI until the session is closed.
// FailedPrecondition otherwise. MPI_THREAD_FUNNELED is enough if the calling thread is the main
// thread.
// A session with a progress thread needs MPI_THREAD_MULTIPLE.
// From this call on the whole process ignores SIGPIPE, unless the program handles SIGPIPE. Over TCP
// this signal would end those who send to a rank that has died.
// MPI_Finalize must come after the session that owns the fabric is destroyed.
absl::StatusOr<std::unique_ptr<Fabric>> MakeMpiFabric(MPI_Comm comm,
                                                      const MpiFabricOptions& options = {});

}  // namespace sluice

#endif  // SLUICE_MPI_H_
