// Short messages between ranks over MPI, outside the order of everything else.
#ifndef SLUICE_SRC_TRANSPORT_MPI_MPI_POSTS_H_
#define SLUICE_SRC_TRANSPORT_MPI_MPI_POSTS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "sluice/fabric.h"
#include "transport/mpi/mpi_communicator.h"
#include "transport/rank_processes.h"

namespace sluice {

// One standing receive from any rank; a send for each post, which is under way until its receiver
// has polled. A send keeps a copy of its record, which equal posts in a row share. So one word to
// all ranks of a large job is kept once. Thread: one.
class MpiPosts {
 public:
  // `processes`, or null, tells to whom nothing is posted any more.
  MpiPosts(std::shared_ptr<MpiCommunicator> comm, std::shared_ptr<RankProcesses> processes);
  // Never waits: what is still under way keeps its memory, and the communicator, until it is over.
  ~MpiPosts();
  MpiPosts(const MpiPosts&) = delete;
  MpiPosts& operator=(const MpiPosts&) = delete;

  // Begins to listen; called once.
  absl::Status Listen();

  // As in Fabric.
  absl::Status Post(int dst, absl::Span<const std::byte> record);
  bool Poll(int* src, std::vector<std::byte>* record);

 private:
  using Record = std::vector<std::byte>;
  // Memory that MPI reads and writes.
  struct Messages {
    std::array<std::byte, Fabric::kMaxPostBytes> received;
    MPI_Request receive = MPI_REQUEST_NULL;
    // Posts that are under way, one entry each.
    std::vector<MPI_Request> sends;
    std::vector<std::shared_ptr<const Record>> records;
    std::vector<int> dsts;
  };

  // Forgets posts that have arrived.
  void ReapSends();
  // Keeps what the last entry of `sends`, a post to `dst`, still needs.
  void Keep(int dst);

  const std::shared_ptr<MpiCommunicator> comm_;
  const std::shared_ptr<RankProcesses> processes_;
  std::unique_ptr<Messages> messages_ = std::make_unique<Messages>();
  std::shared_ptr<const Record> last_;  // posted
  std::vector<uint8_t> pending_;        // by rank: posts to it that are under way
  std::vector<int> indices_;            // scratch for ReapSends
};

}  // namespace sluice

#endif  // SLUICE_SRC_TRANSPORT_MPI_MPI_POSTS_H_
