// A communicator of a fabric or of its transports, apart from the user's own.
#ifndef SLUICE_SRC_TRANSPORT_MPI_MPI_COMMUNICATOR_H_
#define SLUICE_SRC_TRANSPORT_MPI_MPI_COMMUNICATOR_H_

#include <mpi.h>

#include <cstddef>
#include <memory>
#include <thread>

#include "absl/status/statusor.h"
#include "sluice/transport.h"
#include "transport/deadline.h"
#include "transport/mpi/mpi_retired.h"
#include "transport/rank_processes.h"

namespace sluice {

// Tags on it. Control records keep apart from channels, so neither can take the other's messages.
inline constexpr int kMpiPostTag = 0;
inline constexpr int kMpiGatherTag = 1;
inline constexpr int kMpiOverTag = 2;  // of the barrier before a communicator is freed
inline constexpr int kMpiFarewellTag = 3;
inline constexpr int kMpiChannelTagBase = 16;
inline constexpr int kMpiTagsPerLength = 1 << 15;
static_assert(kMpiChannelTagBase + kMaxTransportTag < kMpiTagsPerLength);

// Owns a duplicate of a communicator; its errors are returned. Shared by all that use it. The last
// of them retires it (mpi_retired.h): it is freed once all ranks have done so, and nothing is under
// way on it any more. For that all sends on it are synchronous. Thread: one. If MPI takes calls of
// one thread alone, the destructor checks that this thread made the object.
class MpiCommunicator {
 public:
  // Collective over `comm`. DeadlineExceeded if the ranks do not come together in time; what
  // `processes`, where it is not null, says of ranks that have ended.
  static absl::StatusOr<std::shared_ptr<MpiCommunicator>> Duplicate(
      MPI_Comm comm, const Deadline& deadline, RankProcesses* processes = nullptr);

  // Takes over `comm`.
  explicit MpiCommunicator(MPI_Comm comm);
  ~MpiCommunicator();
  MpiCommunicator(const MpiCommunicator&) = delete;
  MpiCommunicator& operator=(const MpiCommunicator&) = delete;

  MPI_Comm get() const { return comm_; }
  int rank() const { return rank_; }
  int size() const { return size_; }

  // The tag of a message of `bytes` on a channel. Lengths have different tags, as far as there are
  // any, so that ends which disagree never meet: Open MPI 4.1 reads a long message whole into a
  // short receive, past its end, where the sender's memory can be read directly.
  int ChannelTag(int channel_tag, size_t bytes) const;
  // The tag of what follows a message without bytes that has announced it, by length as well.
  int BodyTag(int channel_tag, size_t bytes) const;

  // Operations on it that nobody here asks for any more, and what they read and write.
  void Keep(MpiUnfinished unfinished);

  // Never to be freed: a collective operation on it may still be under way.
  void Abandon() { abandoned_ = true; }

 private:
  MPI_Comm comm_;
  int rank_ = 0;
  int size_ = 0;
  const std::thread::id thread_ = std::this_thread::get_id();
  int length_classes_ = 1;  // lengths that tags can tell apart; a prime number, or 1
  bool abandoned_ = false;
  MpiUnfinished unfinished_;
};

// True if MPI may still be called.
bool MpiIsUsable();

// True if MPI says that messages may lie in the memory of CUDA devices.
bool MpiTakesDeviceMemory();

// Takes back a receive. True if the request is no longer active. False if a message that has not
// come whole has met the request: the request's memory stays in use. Does not wait.
bool WithdrawReceive(MPI_Request* request);

}  // namespace sluice

#endif  // SLUICE_SRC_TRANSPORT_MPI_MPI_COMMUNICATOR_H_
