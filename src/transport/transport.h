// The seam to whatever carries the bytes of buckets between ranks.
//
// A transport moves bytes and decides nothing: which bucket goes when is the engine's business.
#ifndef SLUICE_SRC_TRANSPORT_TRANSPORT_H_
#define SLUICE_SRC_TRANSPORT_TRANSPORT_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace sluice {

// One send or one receive of a whole bucket.
struct TransportOp {
  enum class Kind : uint8_t { kSend, kReceive };

  Kind kind = Kind::kSend;
  int peer = -1;              // the other rank; never this one
  int tag = 0;                // the channel's tag, 0 .. kMaxTransportTag
  std::byte* data = nullptr;  // valid, and for a send unchanged, until the op's event
  size_t bytes = 0;           // both ends give the same number, at most kMaxTransportBytes
  uint64_t cookie = 0;        // comes back in the event
  // Where the bytes are rows of `row_bytes`, this far apart from `data` on. 0 rows: one stretch.
  // Each end has rows of its own.
  size_t row_bytes = 0;
  size_t stride_bytes = 0;
};

inline constexpr int kMaxTransportTag = 1 << 14;
inline constexpr size_t kMaxTransportBytes = size_t{1} << 30;

struct TransportEvent {
  uint64_t cookie = 0;
  absl::Status status;  // not OK: names the peer and what failed
};

// Contract, checked by tests/transport/transport_contract.h:
// * Operations between two ranks with one tag match in the order in which each side started them,
//   sends with receives. Different tags and peers do not wait for each other.
// * A message whose length differs from its receive's does not pass for it: the receive gets a
//   DataLoss event, or neither it nor its send may ever end, which is for a stall watchdog to find.
//   Nothing is written past `data + bytes`, and other operations go on.
// * Every other started operation gives exactly one event, in any order, also after an error.
// * At most `capacity` operations are outstanding; Start refuses more with ResourceExhausted and
//   starts none of the batch. Nothing is allocated per operation.
// * Nothing blocks. Messages make progress only inside Start and Poll of both ends.
// Thread: one, the session's.
class Transport {
 public:
  // Withdraws receives that no message has met yet. Whatever else is outstanding cannot be taken
  // back: its memory must stay valid until the process ends. Never waits.
  virtual ~Transport() = default;

  // "mpi", "loopback": for error messages and tables.
  virtual absl::string_view name() const = 0;

  // Makes room for `capacity` outstanding operations (never less than before; at first there is
  // room for none). Allocates; nothing may be outstanding.
  virtual absl::Status Reserve(int capacity) = 0;

  // Starts all operations of a batch, in order. An error concerns the batch: none was started.
  // An operation that fails by itself reports through its event.
  virtual absl::Status Start(absl::Span<const TransportOp> ops) = 0;

  // Fills `events` from the front with what has finished since the last call; returns how many.
  // An error concerns the transport as a whole: what is outstanding will not be heard of again.
  virtual absl::StatusOr<int> Poll(absl::Span<TransportEvent> events) = 0;

  // Takes back the receives that no message has met yet: each ends with a Cancelled event. Sends,
  // and receives that a message has met, cannot be taken back and end as they would have.
  // Operations started later are not concerned.
  virtual void Withdraw() = 0;

  // Operations started whose event has not been returned.
  virtual int outstanding() const = 0;
};

}  // namespace sluice

#endif  // SLUICE_SRC_TRANSPORT_TRANSPORT_H_
