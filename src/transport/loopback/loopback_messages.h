// The messages of a loopback transport: matches sends with receives and copies, in one process.
//
// Knows nothing of fabrics.
#ifndef SLUICE_SRC_TRANSPORT_LOOPBACK_LOOPBACK_MESSAGES_H_
#define SLUICE_SRC_TRANSPORT_LOOPBACK_LOOPBACK_MESSAGES_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "sluice/transport.h"

namespace sluice {

// How sends end.
enum class LoopbackSends : uint8_t {
  kMeetTheirReceives,  // as the contract has it
  // At once: messages are stored until somebody asks for them. This breaks the contract of
  // Transport, so that tests can show that they would notice.
  kEager,
};

// Shared by the transports of all ranks. Threads: any; one lock, held while a message is copied.
class LoopbackMessages {
 public:
  LoopbackMessages(int size, LoopbackSends sends)
      : sends_(sends), ends_(static_cast<size_t>(size)) {}

  // Each as in Transport, for the end of `rank`.
  void Reserve(int rank, int capacity);
  absl::Status Start(int rank, absl::Span<const TransportOp> ops);
  int Poll(int rank, absl::Span<TransportEvent> events);
  void Withdraw(int rank);
  int outstanding(int rank) const;

  // From now on sends between `rank` and others that have parted end with Cancelled.
  void Part(int rank);
  // The same, and forgets all operations of `rank`, so that nobody touches their memory any more.
  void Forget(int rank);

 private:
  struct Entry {
    TransportOp op;
    absl::Status status;
    int previous = -1;
    int next = -1;
  };
  struct Stored {
    int src;
    int tag;
    std::vector<std::byte> bytes;
  };
  // A list of entries of one end, by index, so that no operation allocates.
  struct List {
    int head = -1;
    int tail = -1;
  };
  struct End {
    std::vector<Entry> entries;
    List unused;
    List unmatched;  // in the order they were started
    List ended;
    int outstanding = 0;
    std::deque<Stored> stored;  // that came to it eagerly, in the order they were sent
    bool parted = false;
  };

  static void Append(End& end, List& list, int index);
  static void Remove(End& end, List& list, int index);
  static void Move(End& end, List& from, List& to, int index);

  void StartOne(int rank, const TransportOp& op);
  // The first unmatched entry of `op`'s peer that `op`, started by `rank`, meets; -1: none.
  int FindPartner(int rank, const TransportOp& op) const;
  void PartFromAll(int rank);
  // Those of `src` to `dst` that nobody has met.
  void EndSends(int src, int dst);

  // Takes what was sent eagerly to `rank` for the receive `op`. False: nothing is there.
  bool TakeStored(int rank, const TransportOp& op, absl::Status* status);

  const LoopbackSends sends_;
  mutable std::mutex mutex_;
  std::vector<End> ends_;
};

// The end of `rank`.
std::unique_ptr<Transport> MakeLoopbackTransport(int rank, int size,
                                                 std::shared_ptr<LoopbackMessages> messages);

}  // namespace sluice

#endif  // SLUICE_SRC_TRANSPORT_LOOPBACK_LOOPBACK_MESSAGES_H_
