// Sees to it that reads end well. Tries again what is transient, starts a second read beside one
// that takes long, and says in one error what cannot be had.
//
// Knows memory blocks and reads, not buckets or items.
#ifndef SLUICE_SRC_SESSION_SHARD_READ_DESK_H_
#define SLUICE_SRC_SESSION_SHARD_READ_DESK_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "session/shard/hedge_policy.h"
#include "session/shard/next_attempt.h"
#include "session/shard/request_pace.h"
#include "sluice/stream.h"
#include "storage/source.h"

namespace sluice {

// One range to be read, for the slot that asked.
struct ReadOrder {
  int slot = 0;
  int object = 0;
  int64_t offset = 0;
  int64_t bytes = 0;
  int64_t item = 0;
  int64_t batch = 0;      // see ReadOp
  bool may_lend = false;  // the source may answer with memory of its own
  bool aside = false;     // see ReadOp
  bool may_join = false;  // begins where the order before it ends, and may be one request with it
};

struct ReadDone {
  int slot = 0;
  absl::Status status = {};         // not OK: has a ReadFailure
  const std::byte* data = nullptr;  // where the range begins, until the slot's next order
  int64_t latency_ns = 0;
  bool at_once = false;  // nobody waited for storage; not told of what is read aside
  bool aside = false;    // it was asked for so
  // Not null: `data` is the source's, may only be read, and stays as long as anybody has this.
  std::shared_ptr<const LentMemory> lender = nullptr;
};

struct ReadDeskCounters {
  int64_t hedges = 0;
  int64_t hedges_won = 0;
  int64_t retries = 0;
  int64_t runs = 0;  // requests that do not begin where the one before ends
};

// Memory is `slots` + `spares` equal blocks. A slot has one block at any time; a hedge takes a
// spare one. If the hedge answers first, the two change places. The other block is spare again when
// its read has ended. Until then nothing else uses it. Further blocks, `kept`, are the caller's,
// who may exchange one of them for a slot's.
//
// A read is late when no byte of it has come for RetryOptions::request_timeout. Progress that the
// source tells of its reads counts (ReadProgress). So a read is not late while it waits in a queue
// of ours or while its bytes come slowly. Late reads lower how many are under way: RequestPace.
// Orders beyond that wait here, the oldest first.
//
// Thread: one.
class ReadDesk {
 public:
  // `source` must outlive this object. `names` of objects are for messages. `memory` is
  // (slots + spares + kept) x block_bytes, aligned to kReadAlignment as block_bytes is.
  ReadDesk(Source* source, std::vector<std::string> names, int slots, int spares, int kept,
           std::byte* memory, int64_t block_bytes, const HedgeOptions& hedge,
           const RetryOptions& retry);

  // The block of a slot: stays the same while the slot has no order and no Exchange.
  std::byte* BlockOf(int slot) const { return memory_ + int64_t{Of(slot).block} * block_bytes_; }
  // Its number, counted from the beginning of the memory: slots and spares, then what is kept.
  int BlockNumberOf(int slot) const { return Of(slot).block; }
  // The slot, which has no order, gets `block` of the caller's; its own is the caller's then.
  void SwapBlock(int slot, int block);

  // Takes an order; the slot has none. Begun with the next Flush, or when its turn comes.
  void Order(const ReadOrder& order, int64_t now_ns);
  // Starts what was ordered.
  absl::Status Flush();

  // Takes in what has been answered, begins retries and hedges that are due, and fills `done` from
  // the front; returns how many. An error is the source's as a whole.
  absl::StatusOr<int> Poll(absl::Span<ReadDone> done, int64_t now_ns);

  // When Poll has something to do at the latest, without an answer; INT64_MAX if nothing.
  int64_t next_due_ns() const;

  // Reads that storage has not answered, hedges and their losers among them.
  int outstanding() const { return outstanding_; }
  // Blocks beside the slots' own that are in use.
  int spares_used() const { return spare_count_ - static_cast<int>(spares_.size()); }
  // Gives up everything: asks the source to end what it can; nothing is tried again.
  void CancelAll();

  const ReadDeskCounters& counters() const { return counters_; }

 private:
  static constexpr int kNone = -1;

  struct Block {
    int slot = kNone;      // whose answer it is to be; kNone: nobody's any more, or no read
    bool reading = false;  // the source may write into it
    bool hedge = false;
    bool counted = false;    // among those that the pace limits: not lost, not late
    bool looked_at = false;  // a hedge of it was begun, or was not to be had
    bool timed_out = false;
    bool recalled = false;  // before its turn in the source came
    int64_t ordered_ns = 0;
    // Reads that are under way form a list, the oldest first.
    int before = kNone;
    int after = kNone;
  };
  struct Slot {
    ReadOrder order;
    int block = 0;
    int rival = kNone;    // the block of its hedge
    uint64_t serial = 0;  // of the order
    int attempts = 0;
    AskedPauses asked;
    bool ordered = false;
    int64_t retry_ns = INT64_MAX;  // when the next attempt begins
    absl::Status failure;          // of the last attempt
  };

  const Slot& Of(int slot) const { return slots_[static_cast<size_t>(slot)]; }
  Slot& Of(int slot) { return slots_[static_cast<size_t>(slot)]; }
  const Block& At(int block) const { return blocks_[static_cast<size_t>(block)]; }
  Block& At(int block) { return blocks_[static_cast<size_t>(block)]; }
  void Wait(int slot);
  void BeginWaiting(int64_t now_ns);
  void Begin(int slot, int block, bool hedge, int64_t now_ns);
  void End(int block);
  // Reads that the source has not been given, or has refused.
  void DropReady();
  void Discount(Block* block);
  int64_t BegunNs(int block) const;
  int64_t LateNs(int block) const;
  int64_t ShortestNs() const;
  bool TryHedge(int block, int64_t now_ns);
  void LookAtReads(int64_t now_ns);
  void GiveUp(int block, int64_t now_ns);
  void RecallQueued();
  void QueueRetries(int64_t now_ns);
  // True if all that is under way waits in the source, and was ordered after the slot's order.
  bool OthersWaitFor(int slot) const;
  // True if the slot's order has ended, as `done` says.
  bool Take(ReadEvent& event, int64_t now_ns, ReadDone* done);
  bool TakeFailure(int slot, const absl::Status& status, int64_t now_ns, ReadDone* done);
  absl::Status Final(const Slot& slot) const;

  Source* const source_;
  const std::vector<std::string> names_;
  std::byte* const memory_;
  const int64_t block_bytes_;
  const int spare_count_;
  const RetryOptions retry_;
  const int64_t timeout_ns_;
  HedgePolicy hedges_;
  RequestPace pace_;
  std::vector<Slot> slots_;
  std::vector<Block> blocks_;
  std::vector<ReadProgress> progress_;  // by block, told by the source
  std::vector<int> spares_;             // blocks that nothing uses
  std::vector<ReadOp> ready_;           // to be started
  std::vector<ReadEvent> events_;
  std::vector<int> retries_;  // slots whose next attempt is due later
  std::vector<int> waiting_;  // slots whose turn comes when fewer are under way: a heap
  int oldest_ = kNone;
  int newest_ = kNone;
  int outstanding_ = 0;
  int counted_ = 0;
  uint64_t serial_ = 0;
  // The end of the request that was begun last.
  int last_object_ = kNone;
  int64_t last_end_ = 0;
  int64_t polled_ns_ = 0;        // when Poll was called last
  int64_t judge_ns_ = 0;         // nothing is called late before
  int64_t look_ns_ = INT64_MAX;  // no read needs a look before
  bool stirred_ = false;         // a read was begun, or has ended, since the last grace
  bool cancelled_ = false;
  ReadDeskCounters counters_;
};

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_SHARD_READ_DESK_H_
