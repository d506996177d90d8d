// Communicators that this rank uses no more, until nothing that was sent on them can still arrive.
//
// MPI may give the number of a communicator to the next one as soon as it is freed. The next one
// then gets what comes late for the old one. This may be bytes of the old one, or a message of a
// rank that is not even among the ranks of the next one. A rank's own operations do not tell what
// the others have sent. So a communicator is retired first. Each rank that has retired it
// * takes what still comes and throws it away, so that the sends of the others end;
// * says so once its own operations have ended, by empty messages of a dissemination barrier;
// * frees it when all ranks have said so.
//
// All sends are synchronous, so a send that has ended has been received. When the barrier is over,
// nothing is under way (Hoefler, Siebert, Lumsdaine: "Scalable communication protocols for dynamic
// sparse data exchange", 2010).
#ifndef SLUICE_SRC_TRANSPORT_MPI_MPI_RETIRED_H_
#define SLUICE_SRC_TRANSPORT_MPI_MPI_RETIRED_H_

#include <mpi.h>

#include <memory>
#include <utility>
#include <vector>

namespace sluice {

// Operations that have not ended, and the memory that they read and write.
struct MpiUnfinished {
  std::vector<MPI_Request> requests;
  std::vector<std::shared_ptr<const void>> memory;
};

// Keeps what MPI may still read and write after it could be asked.
inline void KeepForEver(std::shared_ptr<const void> memory) {
  new std::shared_ptr<const void>(std::move(memory));  // NOLINT: never deleted
}

// Takes over a communicator that all of its ranks retire some day. Never waits. Any thread that may
// call MPI.
void RetireMpiCommunicator(MPI_Comm comm, MpiUnfinished unfinished);

// Carries on with all that this process has retired; how many are left. Never waits. Any thread
// that may call MPI; returns at once while another one is at it.
int PollRetiredMpiCommunicators();

}  // namespace sluice

#endif  // SLUICE_SRC_TRANSPORT_MPI_MPI_RETIRED_H_
