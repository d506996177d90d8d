// An all-gather of small records over MPI: TreeGather's messages as messages of MPI.
//
// Not for payload. Nobody receives before a rank looks. Each sender waits for its last message to
// be taken. So at a rank that does not look, MPI holds at most one message of each other rank.
#ifndef SLUICE_SRC_TRANSPORT_MPI_MPI_GATHER_H_
#define SLUICE_SRC_TRANSPORT_MPI_MPI_GATHER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "tensor/error_text.h"
#include "transport/mpi/mpi_communicator.h"
#include "transport/tree_gather.h"

namespace sluice {

// One gather after the other. Thread: one.
class MpiGather {
 public:
  explicit MpiGather(std::shared_ptr<MpiCommunicator> comm);
  // Never waits: what is still under way keeps its memory, and the communicator, until it is over.
  ~MpiGather();
  MpiGather(const MpiGather&) = delete;
  MpiGather& operator=(const MpiGather&) = delete;

  // As Fabric::StartAllGather and Fabric::PollAllGather. After an error from either, all later
  // calls return it.
  absl::Status Start(absl::Span<const std::byte> record);
  absl::StatusOr<bool> Poll(std::vector<std::byte>* all, std::vector<int>* missing);

 private:
  struct Message {
    int peer;
    bool is_receive;
    bool is_needed;  // a send that this rank's gather waits for
    std::vector<std::byte> bytes;
  };
  // Memory that MPI reads and writes, one entry per message under way.
  struct Messages {
    std::vector<MPI_Request> requests;
    std::vector<Message> list;
  };

  // Each true if something has moved.
  absl::StatusOr<bool> Receive();
  absl::StatusOr<bool> Send();
  absl::StatusOr<bool> Test();
  absl::Status Advance();

  absl::StatusOr<bool> Find(MPI_Status* found);
  absl::Status Begin(Message message);
  absl::Status End(const Message& message, int code, const MPI_Status* status);
  ErrorText Describe(const Message& message) const;
  // The ranks that have not taken what this rank's gather waits for.
  std::vector<int> Takers() const;

  const std::shared_ptr<MpiCommunicator> comm_;
  TreeGather tree_;
  std::unique_ptr<Messages> messages_ = std::make_unique<Messages>();
  std::vector<uint8_t> sends_;  // by rank: 1 while a message to it is under way
  int needed_ = 0;              // sends under way that this rank's gather waits for
  std::vector<int> indices_;    // scratch for Test
  std::vector<MPI_Status> statuses_;
  absl::Status status_;
};

}  // namespace sluice

#endif  // SLUICE_SRC_TRANSPORT_MPI_MPI_GATHER_H_
