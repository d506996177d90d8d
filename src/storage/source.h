// The seam to where data shards lie: files, HTTP servers, a program that makes them.
//
// A source reads ranges of bytes of objects. Which range goes when, into which memory, and what to
// do about a failure is its caller's business.
#ifndef SLUICE_SRC_STORAGE_SOURCE_H_
#define SLUICE_SRC_STORAGE_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "tensor/round.h"

namespace sluice {

// How far a read has got, for whoever judges whether it is late. Times are CLOCK_MONOTONIC's.
struct ReadProgress {
  static constexpr int64_t kNotBegun = INT64_MAX;
  // kNotBegun while the read waits for its turn in the source: that is no fault of the storage's.
  int64_t begun_ns = 0;
  // When its last bytes came; before the first, when it was begun. Earlier where they come so
  // slowly that this is as good as silence.
  int64_t moved_ns = 0;
};

// Memory of a source that holds bytes of an object. It stays as long as anybody has it, also after
// the source. Thread: any.
class LentMemory {
 public:
  virtual ~LentMemory() = default;
  // DataLoss if some byte before `end` of the object is no longer what it was: the object has
  // become shorter, or could not be read. Such a byte reads as zero.
  virtual absl::Status Check(int64_t end) const = 0;
};

// One read of a range of an object. Objects are numbered from 0 in the order in which the source
// was given their names.
struct ReadOp {
  int object = 0;
  int64_t offset = 0;         // in the object
  int64_t bytes = 0;          // at least 1
  std::byte* data = nullptr;  // ReadRoom(offset, bytes, alignment()) bytes from here on may be
                              // written until the op's event; aligned to kReadAlignment
  uint64_t cookie = 0;        // comes back in the event; no two outstanding ops share one
  // Which item this is for, and which try it is, from 0 on: seeds for whoever injects latency or
  // faults, and for messages.
  int64_t item = 0;
  int attempt = 0;
  // Begins where the op before it in its batch ends, and may be one request with it.
  bool may_join = false;
  // Which of its consumer's batches it is for: a generator keeps their order.
  int64_t batch = 0;
  // The source may give memory of its own in the event, instead of writing to `data`.
  bool may_lend = false;
  // The caller has something else to do: another thread, where the source has one, rather copies
  // bytes that could come at once.
  bool aside = false;
  // Null, or where the source tells how far the read is: within its own calls alone, and not after
  // the op's event. The caller has set both times to that of the start. A source in which reads
  // wait for their turn says so, and when the wait is over.
  ReadProgress* progress = nullptr;

  void TellWaits() const {
    if (progress != nullptr) *progress = {ReadProgress::kNotBegun, ReadProgress::kNotBegun};
  }
  void TellBegun(int64_t now_ns) const {
    if (progress != nullptr) *progress = {now_ns, now_ns};
  }
  void TellMoved(int64_t now_ns) const {
    if (progress != nullptr) progress->moved_ns = now_ns;
  }
};

struct ReadEvent {
  uint64_t cookie = 0;
  // OK: all bytes are there. Otherwise it names the object and the range, and its code tells what
  // is worth another try:
  //   `Unavailable`                   Transient: an I/O error, a reset connection, 503, 429, a
  //                                   stalled socket.
  //   `NotFound`, `PermissionDenied`  There is no such object, or not for us.
  //   `DataLoss`                      The object ends before the range does, or the answer is not
  //                                   what was asked.
  //   `Cancelled`                     By Cancel.
  //   Anything else                   Permanent.
  absl::Status status = {};
  // The range's offset in the op's memory: the bytes are at data + skew. Below alignment().
  int64_t skew = 0;
  // The bytes were in memory already: nobody waited for storage. A source that cannot tell says no.
  bool at_once = false;
  // Null, or the bytes of an op that may_lend: nothing was written to the op's memory. They may
  // only be read, for as long as anybody has the lender.
  const std::byte* lent = nullptr;
  std::shared_ptr<const LentMemory> lender = nullptr;
};

// A source's counts since it was made. `requests` and `bytes_read` count what was asked of the
// storage and what it sent, rounding to its alignment included.
struct SourceCounters {
  int64_t requests = 0;
  int64_t bytes_read = 0;
  int64_t opens = 0;        // of objects
  int64_t connections = 0;  // made, where the storage is reached by connections
};

// Memory for reads is aligned to this. No source has a larger alignment().
inline constexpr int64_t kReadAlignment = 4096;

// Bytes of memory that a read of `bytes` at `offset` may write, for a source of `alignment`.
constexpr int64_t ReadRoom(int64_t offset, int64_t bytes, int64_t alignment) {
  const int64_t begin = offset / alignment * alignment;
  return RoundUp(offset + bytes - begin, alignment);
}

// Contract, checked by tests/storage/source_contract.h:
// * Every started op gives exactly one event, in any order, also after an error and after Cancel.
// * Ops do not wait for each other beyond `in_flight_max` of them. Opening an object and learning
//   its size is part of its first read. This is done once, and keeps no other object's reads.
// * Nothing is written outside the op's memory, and nothing after its event.
// * A read that waits in the source says so in its progress; one that has begun has its time there.
// * Nothing blocks, but a page fault where memory is mapped. Nothing is allocated per op once as
//   many are outstanding as ever were.
// Thread: one.
class Source {
 public:
  // Waits until nothing writes into memory of ops any more; gives up on the network at once.
  virtual ~Source() = default;

  // "file", "http": for messages and tables.
  virtual absl::string_view name() const = 0;

  // Offsets and lengths are rounded to multiples of this, a power of two; 1 if they are not.
  virtual int64_t alignment() const = 0;

  // True if ops that may_lend get memory of the source's, mostly.
  virtual bool lends() const { return false; }

  // Starts all reads of a batch. An error concerns the batch: none was started.
  virtual absl::Status Start(absl::Span<const ReadOp> ops) = 0;

  // Fills `events` from the front with what has finished since the last call; returns how many. An
  // error concerns the source as a whole: what is outstanding will not be heard of again, and
  // nothing writes into its memory any more.
  virtual absl::StatusOr<int> Poll(absl::Span<ReadEvent> events) = 0;

  // Asks for an op to end soon: it ends with Cancelled, or as it would have. Does nothing if there
  // is none. Its memory stays in use until its event.
  virtual void Cancel(uint64_t cookie) = 0;

  // A file descriptor that polls readable (POLLIN) when Poll may have something to do: events to
  // give, or work to carry on with. Valid as long as the source lives. For waiting in ppoll or
  // epoll.
  virtual int ready_fd() const = 0;

  const SourceCounters& counters() const { return counters_; }

 protected:
  SourceCounters counters_;
};

}  // namespace sluice

#endif  // SLUICE_SRC_STORAGE_SOURCE_H_
