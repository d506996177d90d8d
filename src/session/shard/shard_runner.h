// Carries out the buckets of a data stream or a checkpoint: feeds an engine of their own, and reads
// from storage. Its carrier does the other stages of buckets, by transport and device.
//
// The bytes of a bucket, and where they go, are its ShardWork's business.
#ifndef SLUICE_SRC_SESSION_SHARD_SHARD_RUNNER_H_
#define SLUICE_SRC_SESSION_SHARD_SHARD_RUNNER_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "device/device.h"
#include "engine/engine.h"
#include "session/base/carrier.h"
#include "session/base/copy_queue.h"
#include "session/shard/grouped_reads.h"
#include "session/shard/head_start.h"
#include "session/shard/read_ahead.h"
#include "session/shard/read_desk.h"
#include "sluice/transport.h"
#include "storage/sink.h"
#include "tensor/error_text.h"

namespace sluice {

// One bucket, as this rank takes part in it.
struct ShardPiece {
  BucketId id;
  int channel = 0;
  StageSet stages = 0;  // fill: read from storage, or copied here; move: messages; drain: copies
  ReadOrder read;       // of a reader; the slot is the runner's; no bytes: a fill reads nothing
  int64_t bytes = 0;
  int64_t group = -1;  // its reads go to storage together: see GroupedReads; -1: it goes by itself
  // The work's own. `index` of a stream: which item, from 0 on.
  int64_t index = 0;
  int64_t part = 0;
  int64_t begin_ns = 0;  // of its first stage: the runner's to set
};

// A stream's or a checkpoint's knowledge of its buckets. Called by the runner alone.
class ShardWork {
 public:
  virtual ~ShardWork() = default;

  // The next bucket of this rank, in the order of ids. False: none now; over() tells for good.
  virtual bool NextPiece(ShardPiece* piece) = 0;
  virtual bool over() const = 0;

  // Adds the copies that end a fill: what was read begins at `data`; where nothing was, all of it.
  virtual absl::Status Fill(const ShardPiece&, std::byte* /*data*/, CopyQueue* /*copies*/) {
    return absl::OkStatus();
  }

  // Adds the messages of the bucket's move: sends from `data`, or receives to it, of this cookie.
  virtual void AddMessages(const ShardPiece& piece, std::byte* data, uint64_t cookie,
                           std::vector<TransportOp>* messages) = 0;

  // The bucket's bytes are here and wait to be drained. Once for each bucket that is.
  virtual void Arrived(const ShardPiece& piece) = 0;
  // True if there is memory for the bucket to be drained into. False: ask again.
  virtual bool MayDrain(const ShardPiece& piece) = 0;
  // Asked when a drain begins. To keep the bucket's block instead of copying from it, returns the
  // number of a kept block that takes its place. The block is `memory`, of number `block`, and the
  // bytes begin at `data`. kNoBlock: the bytes are to be copied.
  static constexpr int kNoBlock = -1;
  virtual int KeepBlock(const ShardPiece&, std::byte* /*data*/, std::byte* /*memory*/,
                        int /*block*/) {
    return kNoBlock;
  }
  // Asked instead when a drain begins of what the source has lent (read.may_lend). True: the work
  // keeps `lender`, and nothing is copied from `data`. False: the bytes are to be copied, and the
  // runner asks the lender afterwards whether they were there.
  virtual bool KeepLent(const ShardPiece&, const std::byte* /*data*/,
                        const std::shared_ptr<const LentMemory>& /*lender*/) {
    return false;
  }
  // Adds the copies from `data`, or within the bucket's block.
  virtual absl::Status Drain(const ShardPiece& piece, std::byte* data, CopyQueue* copies) = 0;

  // The write that ends the bucket's drain, where the runner has a sink; data and cookie are the
  // runner's. No bytes: none.
  virtual WriteOp WriteOf(const ShardPiece&) { return {}; }

  // Names, in words, the ranks that take part in a bucket that was given out and is not done;
  // empty: this rank alone.
  virtual ErrorText MembersOf(const ShardPiece&) { return {}; }

  // The bucket has been through all its stages; `data` is still its own, if it was not kept.
  virtual absl::Status Done(const ShardPiece& piece, const std::byte* data) = 0;
};

class StageTrace;  // session/shard/stage_trace.h

struct ShardRunnerOptions {
  int slots = 1;
  int spares = 0;     // blocks for hedges
  int kept = 0;       // blocks of the work's, which it gives for those that it keeps
  int few_slots = 0;  // how many are used where storage answers at once, see ReadAhead; 0: all
  int window = 0;     // from the smallest unfinished bucket to the last one that NextPiece gave
  int64_t block_bytes = kReadAlignment;
  int channels = 1;
  int operations_max = 0;  // messages of one bucket
  std::vector<std::string> object_names;
  HedgeOptions hedge;
  RetryOptions retry;
  int64_t head_start_ns = 0;    // of the item with index 0, at most: see HeadStart
  int64_t first_sends_ns = 0;   // of the messages of that item, at most
  StageTrace* trace = nullptr;  // null: nothing is recorded
  Sink* sink = nullptr;         // of pieces that are written; must outlive the runner
  int64_t write_alignment = 1;  // the sink's, if blocks have room for it
};

// Sums over buckets since the beginning.
struct ShardTimes {
  int64_t read_ns = 0;
  int64_t exchange_ns = 0;
  int64_t copy_ns = 0;
  int64_t write_ns = 0;
  int64_t busy_ns = 0;  // no sum: while there was at least one of these
};

// Thread: one.
class ShardRunner {
 public:
  // (slots + spares + kept) blocks; those that are kept come last. ResourceExhausted if there is no
  // memory.
  static absl::StatusOr<std::shared_ptr<DeviceMemory>> AllocateStaging(
      Device* device, const ShardRunnerOptions& options);

  // `work`, `device` and `source` must outlive the runner; `source` may be null where nothing is
  // read, `transport` where nothing crosses. `staging` is of the same options.
  static absl::StatusOr<std::unique_ptr<ShardRunner>> Make(ShardWork* work, Device* device,
                                                           Source* source,
                                                           std::unique_ptr<Transport> transport,
                                                           std::shared_ptr<DeviceMemory> staging,
                                                           const ShardRunnerOptions& options);
  // Operations that cannot be taken back keep the staging until they are over; reads, for ever.
  ~ShardRunner();

  // A window of buckets that may end in any order: the slowest one is overtaken by so many.
  static constexpr int WindowOf(int slots) { return 4 * slots + 64; }

  // Carries on as far as it goes without waiting; true if anything moved. An error is the first
  // failure; nothing new is started after it.
  absl::StatusOr<bool> Poll();

  // The driver of the runner has other work between two calls, and would rather not copy bytes that
  // storage has at once: see ReadOp. As much is read ahead as there is room for.
  void ReadAside(bool aside) { aside_ = aside; }

  // Everything has been through.
  bool done() const { return engine().idle() && work_->over() && !fetched_; }

  // Fails everything from outside.
  void Poison(const absl::Status& status);
  // After a failure, or the end: true once nothing is under way any more. `parts`: takes back what
  // is, and parts from the other ranks.
  bool Settle(bool parts);

  // There are messages under way, which move only inside Poll.
  bool has_messages() const { return messages() > 0; }
  int messages() const { return carrier_.outstanding_messages(); }
  // The device copies, and is heard only inside Poll.
  bool has_copies() const { return carrier_.outstanding_copies() > 0; }
  // Storage may still write into staging.
  bool has_reads() const { return reads_.outstanding() > 0; }
  // Storage may still read from staging.
  bool has_writes() const { return options_.sink != nullptr && options_.sink->outstanding() > 0; }
  // Poll has something to do then at the latest; INT64_MAX: when an event comes.
  int64_t next_due_ns() const { return std::min(reads_.next_due_ns(), head_start_.end_ns()); }

  // The smallest unfinished bucket, its stage and its members, in words; empty if there is none.
  ErrorText DescribeOldest();

  const EngineCounters& counters() const { return engine().counters(); }
  const ReadDeskCounters& read_counters() const { return reads_.counters(); }
  const ShardTimes& times() const { return times_; }
  int held_peak() const { return held_peak_; }  // slots and spares

 private:
  struct Held {
    ShardPiece piece;
    std::byte* data = nullptr;
    std::shared_ptr<const LentMemory> lender = nullptr;  // not null: of `data`, only to be read
    int64_t begin_ns = 0;                                // of its stage
    bool awaits_room = false;                            // with the device
  };

  ShardRunner(ShardWork* work, Device* device, Source* source, std::unique_ptr<Transport> transport,
              std::shared_ptr<DeviceMemory> staging, const ShardRunnerOptions& options);

  // Functions that the carrier calls of its handler.
  friend class Carrier;
  absl::StatusOr<bool> PollOthers();
  absl::StatusOr<Carrier::Fed> Feed();
  Carrier::Admission Admit(size_t slot, const Command& command);
  bool Copies(size_t slot, Stage stage) const;
  absl::Status Begin(size_t slot, Stage stage);
  absl::Status Continue(size_t slot, Stage stage);
  void StageOver(size_t slot, Stage stage, bool last);
  absl::Status BucketOver(size_t slot);
  absl::Status Flush();

  absl::StatusOr<bool> PollReads();
  absl::StatusOr<bool> PollWrites();
  absl::StatusOr<bool> PollDrains();
  absl::StatusOr<bool> PollParked();
  void Submit();
  absl::Status BeginFill(size_t slot);
  absl::Status BeginCopies(size_t slot, Stage stage);
  absl::Status BeginMove(size_t slot);
  absl::Status BeginDrain(size_t slot);
  absl::Status CopiesOver(size_t slot, Stage stage);
  WriteOp WriteOf(size_t slot) const;
  void NoteHeld();
  // Pieces that were submitted, and have not ended.
  int64_t Unfinished() const;
  // Another piece may be submitted.
  bool MaySubmit() const;
  // All that may be unfinished waits for storage, or for other ranks: more may be.
  void GrowWriteAhead();
  // Orders the reads that need not wait for others.
  void OrderGrouped();
  // A stage begins, or has ended, at `now_ns`.
  void Busy(int64_t now_ns);
  void Idle(int64_t now_ns);
  const Engine& engine() const { return *carrier_.engine(); }
  ShardPiece& PieceOf(uint64_t sequence) { return pieces_[sequence % pieces_.size()]; }
  // Bytes of the wire begin here in a slot's block.
  std::byte* BlockOf(size_t slot) const { return reads_.BlockOf(static_cast<int>(slot)); }

  ShardWork* const work_;
  const ShardRunnerOptions options_;
  const std::shared_ptr<DeviceMemory> staging_;
  Carrier carrier_;
  ReadDesk reads_;
  GroupedReads grouped_;
  std::vector<ShardPiece> pieces_;  // submitted, by sequence
  uint64_t sequence_ = 0;
  bool fetched_ = false;  // the piece of sequence_ is there, but may not begin yet
  ReadAhead read_ahead_;
  int64_t write_ahead_ = 2;  // pieces that may be unfinished, where pieces are written
  bool aside_ = false;
  HeadStart head_start_;
  bool held_back_ = false;      // by the head start, as this step began
  std::vector<Held> held_;      // by slot
  std::vector<size_t> drains_;  // slots that wait for memory, in the order they came
  // Slots whose messages wait for the first item's, or for those of their channel that do.
  std::vector<size_t> parked_;
  std::vector<ReadDone> read_events_;
  ShardTimes times_;
  int busy_stages_ = 0;
  int64_t busy_since_ns_ = 0;
  int held_peak_ = 0;
};

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_SHARD_SHARD_RUNNER_H_
