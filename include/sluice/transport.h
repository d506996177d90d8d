// The seam to whatever carries the bytes of buckets between ranks.
//
// A transport moves bytes and decides nothing: which bucket goes when is the engine's business. A
// Fabric for another bootstrap than MPI returns a transport from OpenTransport.
#ifndef SLUICE_TRANSPORT_H_
#define SLUICE_TRANSPORT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "sluice/layout.h"
#include "sluice/tensor.h"

namespace sluice {

class Device;        // src/device/device.h
class DeviceMemory;  // likewise

// A contribution to a fold: what a rank sends to this one, or what lies here.
struct FoldSource {
  int peer = -1;                    // who sends it; -1: it lies here
  int tag = 0;                      // of that send
  const std::byte* data = nullptr;  // where it lies here, as one stretch or as rows
  size_t row_bytes = 0;
  size_t stride_bytes = 0;
};

// Several sends, contributions of equal length, that a receive makes one result of. They are added
// up in the order of `sources`, with the results of a reduction (docs/layouts.md), and at last
// divided. The receive's memory overlaps none of those that lie here. Elements are whole in every
// row of either end.
struct Fold {
  ReduceOp op = ReduceOp::kSum;
  DType dtype = DType::kF32;
  int64_t divisor = 1;
  absl::Span<const FoldSource> sources;  // two or more, from at least one peer; none twice
};

// Which store instructions a copy writes with: plain ones, which leave what they write in the
// cache, or streaming ones, which pass the cache by.
enum class WriteHint : uint8_t {
  kAuto,       // by the copy's own size, and this machine's cache
  kPlain,      // for what is read soon
  kStreaming,  // for large results; still plain for rows where streaming does not pay
};

// One send or one receive of a whole bucket.
struct TransportOp {
  enum class Kind : uint8_t { kSend, kReceive };

  Kind kind = Kind::kSend;
  int peer = -1;              // the other rank; this one only where traits say so
  int tag = 0;                // the channel's tag, 0 .. kMaxTransportTag
  std::byte* data = nullptr;  // valid, and for a send unchanged, until the op's event
  size_t bytes = 0;           // both ends give the same number, at most kMaxTransportBytes
  uint64_t cookie = 0;        // comes back in the event
  // Rows of `row_bytes` bytes begin `stride_bytes` apart, from `data` on. `row_bytes` 0: one
  // stretch. Each end has rows of its own.
  size_t row_bytes = 0;
  size_t stride_bytes = 0;
  // Which operation of its bucket it is, equal at both ends. An operation may depend on those of
  // lower hops of the bucket, and on no other one.
  int hop = 0;
  // For a receive that this host copies: whether the bytes that it brings are read soon.
  WriteHint stores = WriteHint::kPlain;
  // For a receive: it meets one send of each peer here, of `bytes` bytes, and writes what they come
  // to. `peer` and `tag` are the first one's. Stays, and all that it points to, until the event.
  const Fold* fold = nullptr;
};

inline constexpr int kMaxTransportTag = 1 << 14;
inline constexpr size_t kMaxTransportBytes = size_t{1} << 30;

// Allocates staging in place of Device::AllocateBuffer, whose contract it keeps.
using StagingAllocator = absl::StatusOr<DeviceMemory> (*)(Device* device, size_t bytes);

// The kind of a transport: how it differs from the contract below.
struct TransportTraits {
  absl::string_view name;  // "mpi", "loopback": for error messages and tables; lives for ever
  // An event does not say that the operation has ended. It says that all later work of the device
  // comes after the operation. Operations come after all work that the device had before.
  bool in_stream_order = false;
  // Operations meet in the order in which they are started, without tags, and Start starts a group
  // that blocks as a whole. All ranks must start groups that meet in one order; within one, the
  // operations between two ranks in one order. Then a group may hold one hop of many buckets.
  bool in_groups = false;
  // Which memory operations may be in.
  bool takes_host_memory = true;
  bool takes_device_memory = false;
  // Whether an operation may be rows; otherwise it is one stretch.
  bool takes_rows = true;
  // Whether a receive may fold; each of its sends then counts as an operation outstanding.
  bool takes_folds = false;
  // Whether a rank may send to itself: then the receive is in the same group.
  // Sessions never ask for it: they copy. With one GPU a job of NCCL has one rank. Its messages to
  // itself are then all that the contract can be tried with.
  bool takes_own_rank = false;
  // All operations lie in what UseStaging was given, at both ends, if it was given any.
  bool staged_only = false;
  // Allocates the only memory that UseStaging can prepare; null: UseStaging can prepare any.
  StagingAllocator allocate_staging = nullptr;
};

struct TransportEvent {
  uint64_t cookie = 0;
  absl::Status status;  // not OK: names the peer and what failed
};

// Contract, checked by tests/transport/transport_contract.h:
// * Operations between two ranks with one tag match in the order in which each side started them,
//   sends with receives. Different tags and peers do not wait for each other.
// * A send ends only when its receive has been started, whatever its length. Until then its bytes
//   lie at the sender; copies of some may lie at the receiver, in room of a bounded size. So a
//   sender cannot run ahead of its receiver, and what a rank holds is what it has started. In
//   stream order, the device comes past a send only then. In groups, the device may also come past
//   a send whose bytes lie in room of the transport's own. The transport has had this room since
//   its beginning, and the room does not grow with what is sent.
// * A message whose length differs from its receive's does not pass for it. The receive gets a
//   DataLoss event, or neither the receive nor its send ever ends. A stall watchdog finds the
//   latter. Nothing is written past `data + bytes`, and other operations go on.
// * A receive that folds meets each of its sends as a receive of its own would. It writes nothing
//   before it has met all of them. It gives one event, with the first error if one of them fails.
// * Every other started operation gives exactly one event, in any order, also after an error.
// * At most `capacity` operations are outstanding; Start refuses more with ResourceExhausted and
//   starts none of the batch. Nothing is allocated per operation.
// * Nothing blocks. Messages make progress only inside Start and Poll of both ends.
// TransportTraits say where a kind of transport is different. A transport in groups does not look
// at tags. Lengths that differ may fail it as a whole, and Withdraw ends all of it.
// Thread: one, the session's.
class Transport {
 public:
  explicit Transport(const TransportTraits& traits) : traits_(traits) {}
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
  // Withdraws receives that no message has met yet. All else that is outstanding cannot be taken
  // back: its memory must stay valid until the process ends, or be kept by KeepUntilOver. A message
  // that was sent to it and comes later is never taken for one of another transport. Never waits.
  virtual ~Transport();

  // Memory of what is outstanding stays, beyond the transport's end, until no operation can read or
  // write it any more. The memory stays for ever where the transport cannot tell.
  void KeepUntilOver(std::shared_ptr<const void> memory) { kept_.push_back(std::move(memory)); }

  const TransportTraits& traits() const { return traits_; }
  absl::string_view name() const { return traits_.name; }

  // Makes room for `capacity` outstanding operations (never less than before; at first there is
  // room for none). Allocates; nothing may be outstanding.
  virtual absl::Status Reserve(int capacity) = 0;

  // Whether sends may lie at `data`, which is memory of a kind that it takes. Receives always may.
  virtual bool CanSendFrom(const std::byte* /*data*/) { return true; }

  // Names the memory, of a kind that it takes, in which most operations will lie, to be prepared if
  // this helps. Replaces the memory that was given before; nothing may be outstanding. The memory
  // stays until the next call, or the transport's end.
  virtual absl::Status UseStaging(absl::Span<std::byte> staging) = 0;

  // Closes memory of other ranks that it keeps open for operations to come, so that they may free
  // it. May wait for the device. Nothing may be outstanding.
  virtual void CloseImports() {}

  // Starts all operations of a batch, in order. An error concerns the batch: none was started.
  // An operation that fails by itself reports through its event.
  virtual absl::Status Start(absl::Span<const TransportOp> ops) = 0;

  // Fills `events` from the front with what has finished since the last call; returns how many.
  // An error concerns the transport as a whole: what is outstanding will not be heard of again.
  // Without room for events, in stream order: looks whether anything that has been handed out, and
  // that the device has come past, has failed.
  virtual absl::StatusOr<int> Poll(absl::Span<TransportEvent> events) = 0;

  // Takes back the receives that no message has met yet: each ends with a Cancelled event. Sends,
  // and receives that a message has met, cannot be taken back and end as they would have.
  // Operations started later are not concerned. A transport in groups is ended by it: no part of a
  // group can be taken back, and others wait for it. Operations without an event yet, and all that
  // are started later, fail; all ranks must do the same.
  virtual void Withdraw() = 0;

  // Parts from the other ranks, after a failure: Withdraw; and a send between ranks that have both
  // parted ends, with OK or Cancelled, though nobody receives it. To be called again and again,
  // beside Poll, until it is true. Then nothing is outstanding here, and this rank's parting has
  // come to all others that live. Nothing may be started afterwards. A kind that cannot end sends
  // so does no more than Withdraw. Each of several transports is parted from by itself.
  virtual bool Part() {
    Withdraw();
    return outstanding() == 0;
  }

  // Operations started whose event has not been returned.
  virtual int outstanding() const = 0;

 protected:
  // For the end of a transport that can tell, instead of keeping all for ever.
  std::vector<std::shared_ptr<const void>> TakeKept() { return std::exchange(kept_, {}); }

 private:
  const TransportTraits traits_;
  std::vector<std::shared_ptr<const void>> kept_;
};

}  // namespace sluice

#endif  // SLUICE_TRANSPORT_H_
