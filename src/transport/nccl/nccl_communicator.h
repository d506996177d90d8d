// A non-blocking NCCL communicator of all ranks of a fabric: how it is made, watched and ended.
#ifndef SLUICE_SRC_TRANSPORT_NCCL_NCCL_COMMUNICATOR_H_
#define SLUICE_SRC_TRANSPORT_NCCL_NCCL_COMMUNICATOR_H_

#include <nccl.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "device/cuda/cuda_queue.h"
#include "sluice/fabric.h"
#include "sluice/nccl.h"
#include "sluice/transport.h"
#include "tensor/error_text.h"
#include "transport/deadline.h"
#include "transport/nccl/nccl_ending.h"

namespace sluice {

// Thread: one at a time.
class NcclCommunicator {
 public:
  // Collective over the fabric; an error on one rank is one on all of them. A rank that has no
  // queue says why, and so does one that gets no thread for the communicator's end.
  static absl::StatusOr<std::unique_ptr<NcclCommunicator>> Connect(
      Fabric* fabric, const absl::StatusOr<CudaQueue>& queue, const NcclOptions& options);
  // Lets what has been launched end, for 10 s at most, and then aborts. NCCL may wait for ranks
  // that have not ended yet. After another 10 s it is left to do so on a thread of its own.
  ~NcclCommunicator();
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }

  // False while NCCL still works on the last call, when no other may be made. An error is NCCL's
  // own, whenever it came; the communicator is then good for Abort only.
  absl::StatusOr<bool> Ready();

  // Hands over one group. Whether its kernel is in the stream is for Ready to say.
  absl::Status Launch(absl::Span<const TransportOp> first, absl::Span<const TransportOp> rest);

  // The number of the group that was launched last, for HandedOut: what is drained then comes after
  // this group, and not after later ones.
  uint64_t last_launched() const { return last_launched_; }
  void HandedOut(uint64_t number) const { queue_.HandedOut(number); }

  // Registers memory to be sent from and received into, in place of the memory registered before.
  // Waits for NCCL, but not for other ranks.
  absl::Status Register(absl::Span<std::byte> memory);

  // Ends the kernels that are under way on this rank, whatever they wait for. Kernels of other
  // ranks go on waiting until those ranks abort, too. For good: no other call but this one may
  // follow. Does not wait for the end, because NCCL may wait for other ranks.
  void Abort();
  bool aborted() const { return comm_ == nullptr; }
  // True while an abort has not come back. Until then memory of operations may be in use.
  bool aborting() const { return !ending_->over(); }

 private:
  NcclCommunicator(int rank, int size, const CudaQueue& queue, absl::Duration timeout,
                   std::unique_ptr<NcclEnding> ending)
      : rank_(rank), size_(size), queue_(queue), timeout_(timeout), ending_(std::move(ending)) {}

  absl::Status Begin(const ncclUniqueId& id, const NcclOptions& options);
  absl::Status UntilAllConnected(Fabric* fabric, absl::Status begun);
  absl::Status Issue(const TransportOp& op);
  absl::Status Finalize(const Deadline& deadline);
  // The device is current in these two.
  absl::Status Deregister(const Deadline& deadline);
  // Until no kernel uses memory.
  absl::Status UntilIdle(const Deadline& deadline);
  absl::Status UntilReady(absl::string_view call, const Deadline& deadline);
  Deadline ForLastSteps() const;
  // OK unless `result` is an error of `call`.
  absl::Status Check(ncclResult_t result, absl::string_view call) const;
  ErrorText Describe() const;

  const int rank_;
  const int size_;
  const CudaQueue queue_;
  const absl::Duration timeout_;
  uint64_t last_launched_ = 0;
  ncclComm_t comm_ = nullptr;
  void* registration_ = nullptr;
  const std::unique_ptr<NcclEnding> ending_;
};

}  // namespace sluice

#endif  // SLUICE_SRC_TRANSPORT_NCCL_NCCL_COMMUNICATOR_H_
