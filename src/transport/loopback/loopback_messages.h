// The messages of a loopback transport: matches sends with receives and copies, in one process.
//
// Knows nothing of fabrics.
#ifndef SLUICE_SRC_TRANSPORT_LOOPBACK_LOOPBACK_MESSAGES_H_
#define SLUICE_SRC_TRANSPORT_LOOPBACK_LOOPBACK_MESSAGES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "sluice/transport.h"
#include "transport/tag_lines.h"

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
  };
  // A send that waits at its receiver.
  struct Offer {
    int send = -1;                 // the sender's entry; -1: it has ended, and its bytes lie here
    std::vector<std::byte> bytes;  // that came eagerly
  };
  struct End {
    std::vector<Entry> entries;
    std::vector<int> unused;  // of entries
    std::vector<int> ended;   // likewise, in their order
    int outstanding = 0;
    TagLines<Offer> lines;
    bool parted = false;
  };

  End& At(int rank) { return ends_[static_cast<size_t>(rank)]; }
  static Entry& EntryAt(End& end, int index) { return end.entries[static_cast<size_t>(index)]; }

  void StartSend(int rank, int index);
  void StartReceive(int rank, int index);
  void PartFromAll(int rank);
  // Ends the sends of `src` to `dst` that nobody has met.
  void EndSends(int src, int dst);

  const LoopbackSends sends_;
  mutable std::mutex mutex_;
  std::vector<End> ends_;
};

// The end of `rank`.
std::unique_ptr<Transport> MakeLoopbackTransport(int rank, int size,
                                                 std::shared_ptr<LoopbackMessages> messages);

}  // namespace sluice

#endif  // SLUICE_SRC_TRANSPORT_LOOPBACK_LOOPBACK_MESSAGES_H_
