// How ranks that part end each other's sends. Each says which of its sends nobody has met, and
// takes in and drops what the others say so of. A send over MPI cannot be taken back.
//
// Ranks part after a failure alone, and then each sends one message to each other rank, most of
// them empty. A tree would send fewer, but is not safe here, for two reasons. MPI keeps the order
// of messages between two ranks. So a list that comes straight from its rank comes after all that
// it names; one that comes through a third rank may overtake it. And a rank that has ended, which
// is the failure as a rule, would cut off all ranks behind it. The orderly end of a communicator
// needs none of this: it is a barrier of few messages (mpi_retired.h).
#ifndef SLUICE_SRC_TRANSPORT_MPI_MPI_FAREWELL_H_
#define SLUICE_SRC_TRANSPORT_MPI_MPI_FAREWELL_H_

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "transport/mpi/mpi_communicator.h"
#include "transport/rank_processes.h"

namespace sluice {

// Drops one message after the other, so that one of them at a time takes memory. A message that
// there is no memory for stays. Thread: one.
class MpiFarewell {
 public:
  // A message under way: its MPI tag.
  struct Sent {
    int peer;
    int tag;
  };

  // Says farewell to all other ranks. `sends` are all of this rank's that have not ended, and none
  // is started afterwards; `processes`, where it is not null, says who hears no more.
  MpiFarewell(std::shared_ptr<MpiCommunicator> comm, absl::Span<const Sent> sends,
              std::shared_ptr<RankProcesses> processes);
  // Never waits: what is still under way keeps its memory until it is over.
  ~MpiFarewell();
  MpiFarewell(const MpiFarewell&) = delete;
  MpiFarewell& operator=(const MpiFarewell&) = delete;

  // True once all others that live have said farewell and have heard this rank's, and what they
  // sent has been dropped.
  bool Poll();

 private:
  // Memory that MPI reads and writes.
  struct Messages {
    std::vector<std::vector<int>> lists;  // to each rank: tags of this rank's sends, each once
    std::vector<MPI_Request> sends;       // of these, by rank
    std::vector<int> list;                // the one that is coming in
    MPI_Request receive = MPI_REQUEST_NULL;
    std::unique_ptr<std::byte[]> dropped;  // what a message is received into
    MPI_Request drop = MPI_REQUEST_NULL;
  };

  void Say(int peer);
  void ForgetEnded();
  // Each true if anything has moved.
  bool Hear();
  bool Drop();
  bool IsEnded(int rank) const { return processes_ != nullptr && processes_->HasEnded(rank); }

  const std::shared_ptr<MpiCommunicator> comm_;
  const std::shared_ptr<RankProcesses> processes_;
  const std::shared_ptr<Messages> messages_ = std::make_shared<Messages>();
  int hears_ = -1;              // the rank whose list is coming; -1: none
  int drops_from_ = -1;         // the rank whose message `drop` is
  std::vector<uint8_t> heard_;  // by rank
  std::vector<Sent> to_drop_;   // messages that may have come to this rank
};

}  // namespace sluice

#endif  // SLUICE_SRC_TRANSPORT_MPI_MPI_FAREWELL_H_
