// An all-gather of small records by direct messages, so that silent ranks can be named.
//
// Each rank sends its record to every other one and receives theirs. Not for payload. MPI holds at
// most one record of each rank that has not been asked for. The reason is that nobody begins the
// next gather before all have begun this one.
#ifndef SLUICE_SRC_TRANSPORT_MPI_MPI_GATHER_H_
#define SLUICE_SRC_TRANSPORT_MPI_MPI_GATHER_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "transport/mpi/mpi_communicator.h"

namespace sluice {

// One gather after the other. Thread: one.
class MpiGather {
 public:
  explicit MpiGather(std::shared_ptr<MpiCommunicator> comm) : comm_(std::move(comm)) {}
  // Never waits: what is still under way keeps its memory, and the communicator, until it is over.
  ~MpiGather();
  MpiGather(const MpiGather&) = delete;
  MpiGather& operator=(const MpiGather&) = delete;

  // As Fabric::StartAllGather and Fabric::PollAllGather. After an error from either, all later
  // calls return it.
  absl::Status Start(absl::Span<const std::byte> record);
  absl::StatusOr<bool> Poll(std::vector<std::byte>* all, std::vector<int>* missing);

 private:
  // What MPI reads and writes while a gather is under way.
  struct Messages {
    std::vector<std::byte> record;
    // Room for the longest record from each rank, so that no message is longer than its receive.
    std::vector<std::byte> inbox;
    std::vector<MPI_Request> requests;  // receives from each rank, then sends to each
    std::vector<MPI_Status> statuses;
    std::vector<int> indices;
  };

  absl::Status Post();
  absl::Status Test();
  absl::Status CheckOutcome(int index, const MPI_Status& outcome, bool error_in_status) const;
  std::vector<int> Missing() const;
  std::vector<std::byte> Assemble() const;

  const std::shared_ptr<MpiCommunicator> comm_;
  std::unique_ptr<Messages> messages_;  // null: none under way
  absl::Status status_;
};

}  // namespace sluice

#endif  // SLUICE_SRC_TRANSPORT_MPI_MPI_GATHER_H_
