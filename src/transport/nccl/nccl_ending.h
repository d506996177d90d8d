// The last call to an NCCL communicator, which may wait for other ranks for as long as they like.
#ifndef SLUICE_SRC_TRANSPORT_NCCL_NCCL_ENDING_H_
#define SLUICE_SRC_TRANSPORT_NCCL_NCCL_ENDING_H_

#include <nccl.h>

#include <memory>

#include "absl/status/statusor.h"

namespace sluice {

// Makes the call on a thread of its own, which is left to itself. Destroying a communicator joins a
// thread of NCCL's, which serves the ranks that have connected to it until they end, too. Aborting
// one may do so. Thread: the communicator's.
class NcclEnding {
 public:
  // Starts the thread, which then waits for Start: at the end it may be too late for a new one.
  // ResourceExhausted if the system gives none.
  static absl::StatusOr<std::unique_ptr<NcclEnding>> Create();
  // Without Start, the thread ends.
  ~NcclEnding();
  NcclEnding(const NcclEnding&) = delete;
  NcclEnding& operator=(const NcclEnding&) = delete;

  // Called once per object. `call` is ncclCommAbort or ncclCommDestroy, `ordinal` the
  // communicator's device. NCCL sets the thread's device again at the end, which makes a context
  // there: the communicator's own is current meanwhile.
  void Start(ncclResult_t (*call)(ncclComm_t), ncclComm_t comm, int ordinal);
  // True from when the call has come back, and before Start. Until then NCCL may use memory that it
  // was given.
  bool over() const;

 private:
  struct Handover;  // between the thread and this object, either of which may go first

  explicit NcclEnding(std::shared_ptr<Handover> handover);
  static void Run(Handover* handover);

  const std::shared_ptr<Handover> handover_;
};

}  // namespace sluice

#endif  // SLUICE_SRC_TRANSPORT_NCCL_NCCL_ENDING_H_
