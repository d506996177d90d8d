// Messages between ranks by non-blocking MPI point-to-point. It only moves bytes.
#ifndef SLUICE_SRC_TRANSPORT_MPI_TRANSPORT_H_
#define SLUICE_SRC_TRANSPORT_MPI_TRANSPORT_H_

#include <mpi.h>

#include <array>
#include <cstddef>
#include <map>
#include <memory>
#include <vector>

#include "transport/mpi_communicator.h"
#include "transport/transport.h"

namespace sluice {

// Active requests stand in a dense array, so that a poll scans no more than what is active.
class MpiTransport final : public Transport {
 public:
  explicit MpiTransport(std::shared_ptr<MpiCommunicator> comm)
      : Transport({.name = "mpi", .takes_device_memory = MpiTakesDeviceMemory()}),
        comm_(std::move(comm)) {}
  ~MpiTransport() override;

  absl::Status Reserve(int capacity) override;
  absl::Status UseStaging(absl::Span<std::byte> /*staging*/) override { return absl::OkStatus(); }
  absl::Status Start(absl::Span<const TransportOp> ops) override;
  absl::StatusOr<int> Poll(absl::Span<TransportEvent> events) override;
  void Withdraw() override;
  int outstanding() const override { return active_ + ended_; }

 private:
  void StartOne(const TransportOp& op);
  // The type of an operation's rows, made on first use.
  absl::StatusOr<MPI_Datatype> TypeOf(const TransportOp& op);
  void FreeTypes();
  void WithdrawOne(size_t slot);
  // Moves what MPI has completed from the active requests to the ended events.
  absl::Status Test();
  absl::Status Outcome(const TransportOp& op, const MPI_Status& outcome,
                       bool error_in_status) const;
  void End(uint64_t cookie, absl::Status status);
  void CloseGaps();

  // Rows by number, size and distance.
  using RowsKey = std::array<size_t, 3>;

  const std::shared_ptr<MpiCommunicator> comm_;
  std::map<RowsKey, MPI_Datatype> types_;
  int capacity_ = 0;
  int active_ = 0;                     // requests_[0 .. active_) and ops_[0 .. active_)
  std::vector<MPI_Request> requests_;  // this and the following: capacity_ entries
  std::vector<TransportOp> ops_;
  std::vector<MPI_Status> statuses_;
  std::vector<int> indices_;
  std::vector<TransportEvent> events_;  // a ring: ended_ events from first_ended_ on
  int first_ended_ = 0;
  int ended_ = 0;
};

}  // namespace sluice

#endif  // SLUICE_SRC_TRANSPORT_MPI_TRANSPORT_H_
