// A communicator of a fabric or of its transports, apart from the user's own.
#ifndef SLUICE_SRC_TRANSPORT_MPI_COMMUNICATOR_H_
#define SLUICE_SRC_TRANSPORT_MPI_COMMUNICATOR_H_

#include <mpi.h>

#include <cstddef>
#include <memory>

#include "absl/status/statusor.h"
#include "transport/deadline.h"
#include "transport/transport.h"

namespace sluice {

// Tags on it. Control records keep apart from channels, so neither can take the other's messages.
inline constexpr int kMpiPostTag = 0;
inline constexpr int kMpiGatherTag = 1;
inline constexpr int kMpiChannelTagBase = 16;
inline constexpr int kMpiTagsPerLength = 1 << 15;
static_assert(kMpiChannelTagBase + kMaxTransportTag < kMpiTagsPerLength);

// Owns a duplicate of a communicator; its errors are returned. Shared by all that use it, and freed
// by the last of them, unless that could hang or crash. Thread: one.
class MpiCommunicator {
 public:
  // Collective over `comm`. DeadlineExceeded if the ranks do not come together in time.
  static absl::StatusOr<std::shared_ptr<MpiCommunicator>> Duplicate(MPI_Comm comm,
                                                                    const Deadline& deadline);

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

  // Never to be freed: operations may still be under way on it, here or on another rank.
  void Abandon() { abandoned_ = true; }

 private:
  MPI_Comm comm_;
  int rank_ = 0;
  int size_ = 0;
  int length_classes_ = 1;  // lengths that tags can tell apart; a prime number, or 1
  bool abandoned_ = false;
};

// True if MPI may still be called.
bool MpiIsUsable();

// True if MPI says that messages may lie in the memory of CUDA devices.
bool MpiTakesDeviceMemory();

// Takes back a receive. True if the request is no longer active; false if a message has met it that
// has not come whole, so that its memory stays in use. Does not wait.
bool WithdrawReceive(MPI_Request* request);

}  // namespace sluice

#endif  // SLUICE_SRC_TRANSPORT_MPI_COMMUNICATOR_H_
