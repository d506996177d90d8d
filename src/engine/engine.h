// The gate: decides which buckets of one rank are alive, and in which stage each one is.
//
// The engine only decides. Events go in (Submit, Finish, Fail, Cancel), commands come out (Next).
// It never waits, copies, allocates payload memory, reads a clock, starts a thread, takes a lock or
// includes a vendor header; equal inputs give equal outputs. Its one rule (docs/gate.md): the
// smallest unfinished bucket always has a slot.
#ifndef SLUICE_SRC_ENGINE_ENGINE_H_
#define SLUICE_SRC_ENGINE_ENGINE_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "engine/sequence_heap.h"
#include "engine/stage.h"
#include "plan/bucket.h"

namespace sluice {

inline constexpr int kMaxSlotsPerBucket = 2;

struct EngineOptions {
  int channels = 1;              // channels are 0 .. channels-1; 0 for a rank with nothing to do
  int max_in_flight = 2;         // admitted and unfinished buckets per channel, at least 1
  int slots = 16;                // the budget; at least slots_per_bucket_max
  int slots_per_bucket_max = 1;  // the dearest submission there may be: 1 or 2
  int look_ahead = 4096;         // from the smallest unfinished bucket to the last submitted one
};

// One bucket, as one member sees it.
struct Submission {
  BucketId id;
  int channel = 0;
  StageSet stages = kStageDrain;  // not empty
  int slots = 1;                  // slots it holds from admission to its end
  int64_t staging_bytes = 0;      // memory used in these slots; 0 where its side is contiguous
  int operations = 1;             // transport operations outstanding while it moves
  uint64_t cookie = 0;            // comes back in commands
};

// Names a live bucket. Tickets count submissions, modulo 2^32, so a stale one is noticed.
using Ticket = uint32_t;

// "Start this stage of this bucket now."
struct Command {
  Ticket ticket = 0;
  Stage stage = Stage::kWaiting;  // kFilling, kMoving or kDraining
  uint64_t cookie = 0;
  BucketId id;
  std::array<int, kMaxSlotsPerBucket> slots = {-1, -1};  // numbers below EngineOptions::slots
};

// What holds back the smallest bucket that could be admitted next, after Next returned false.
enum class Blocked : uint8_t {
  kNothingWaiting,
  kChannel,  // every waiting bucket's channel is full
  kBudget,   // some waiting bucket's channel has room, but its slots are not to be had
};

struct EngineCounters {
  int64_t submitted = 0;
  int64_t admitted = 0;
  int64_t finished = 0;  // reached kDone
  int64_t failed = 0;
  int64_t cancelled = 0;
  // Buckets that were still waiting when Next had returned false, each once, by what held it back
  // then: its channel was full, or otherwise the budget.
  int64_t waited_for_channel = 0;
  int64_t waited_for_budget = 0;
  // Now and at most, over all channels. "Held" means admitted and not ended.
  int held_buckets = 0;
  int held_buckets_peak = 0;
  int held_slots = 0;
  int held_slots_peak = 0;
  int64_t staging_bytes = 0;
  int64_t staging_bytes_peak = 0;
  int operations = 0;
  int operations_peak = 0;
};

struct ChannelCounters {
  int64_t admitted = 0;
  int64_t finished = 0;
  int in_flight = 0;
  int in_flight_peak = 0;
  int64_t staging_bytes = 0;
  int64_t staging_bytes_peak = 0;
  int operations = 0;
  int operations_peak = 0;
};

// Admission. Of the waiting buckets, each channel offers its smallest while it has fewer than
// max_in_flight in flight. The smallest unfinished bucket may be admitted whenever its slots are
// free. Another bucket b may be admitted only while
//     free - b.slots + (slots the smallest unfinished bucket holds) >= slots_per_bucket_max,
// so that when the smallest one ends, the next one finds its slots. Among those allowed, smallest
// id first.
//
// Order. Buckets of one channel begin kMoving in id order (a transport matches both sides' n-th
// operations), whatever order their fills finish in. A bucket without kStageMove keeps no one.
//
// Commands for admitted buckets come before new admissions.
//
// Errors are programming errors of the caller and are checked in release builds as well: an id not
// above all earlier ones, a channel out of range, a ticket that is not live, Submit without room.
//
// Cost: O(1) per event and per command, O(log look_ahead) per admission, whatever the number of
// channels. Allocates only in its constructor (and for texts). Copyable, so that tests can branch.
// Thread: one.
class Engine {
 public:
  explicit Engine(const EngineOptions& options);

  const EngineOptions& options() const { return options_; }

  // True if Submit may be called: fewer than look_ahead buckets from the smallest unfinished one to
  // the last submitted one, and nothing has failed.
  bool CanSubmit() const;

  // Takes the next bucket. Ids must ascend over the engine's life.
  Ticket Submit(const Submission& submission);

  // The next command, or false if there is none until an event comes in.
  bool Next(Command* command);

  // The stage that was last commanded for `ticket` has been carried out.
  void Finish(Ticket ticket);

  // It could not be: the bucket ends as kFailed and the engine is poisoned with `status`, which
  // must not be OK.
  void Fail(Ticket ticket, const absl::Status& status);

  // Gives up a bucket: at once if no stage of it is under way, otherwise when that stage ends. A
  // peer is not told: all members have to cancel.
  void Cancel(Ticket ticket);

  // Fails the engine. The first failure is kept in status(); from then on Next gives nothing and
  // nothing can be submitted. Buckets with no stage under way end at once, as kFailed. Finish and
  // Fail are still taken for stages under way, and then those buckets end (as kFailed) and give
  // their slots back; when idle() is true again nobody uses the slots any more. Whoever wants to
  // describe the stall must do so before.
  void Poison(const absl::Status& status);

  const absl::Status& status() const { return status_; }
  bool idle() const { return live_ == 0; }  // nothing waiting, nothing held
  Blocked blocked() const;

  const EngineCounters& counters() const { return counters_; }
  const ChannelCounters& channel_counters(int channel) const;
  // Sets every peak to the present value, and every count of events to 0.
  void ResetCounters();

  // The smallest unfinished bucket: for watchdogs.
  struct Oldest {
    BucketId id;
    Stage stage = Stage::kWaiting;
    int channel = 0;
    uint64_t cookie = 0;
  };
  bool OldestUnfinished(Oldest* oldest) const;

  // A few lines for people: the smallest unfinished bucket, its stage, ends and channel; slots free
  // and held; live buckets by stage; what blocks admission.
  std::string DescribeStall() const;

 private:
  // Places in ring_; kNowhere ends a list.
  using Place = int32_t;
  static constexpr Place kNowhere = -1;

  enum class Progress : uint8_t {
    kQueued,    // not admitted
    kTurn,      // admitted; kMoving comes next, when its channel's earlier buckets have begun it
    kReady,     // admitted; in ready_
    kUnderWay,  // its stage was commanded and has not finished
  };

  // One submitted bucket: a cache line.
  struct alignas(64) Record {
    BucketId id;
    uint64_t cookie = 0;
    int64_t staging_bytes = 0;
    int32_t channel = 0;
    int32_t operations = 0;
    Ticket ticket = 0;
    Place next = kNowhere;  // the next bucket of its channel
    std::array<int32_t, kMaxSlotsPerBucket> slots = {-1, -1};
    Stage stage = Stage::kDone;  // the last one commanded
    StageSet stages = 0;
    uint8_t slot_count = 0;
    Progress progress = Progress::kQueued;
    bool cancelled = false;
  };

  // A channel's buckets form a list through Record::next, in id order. Both cursors only advance.
  struct alignas(64) Channel {
    Place waiting = kNowhere;  // the first that is not admitted
    Place unmoved = kNowhere;  // the first that has a move and was not given its turn
    Place last = kNowhere;     // meaningful while a cursor is somewhere
    ChannelCounters counters;
  };

  Place PlaceOf(uint64_t sequence) const { return static_cast<Place>(sequence & place_mask_); }
  uint64_t SequenceOf(const Record& record) const {
    return head_ + static_cast<Ticket>(record.ticket - static_cast<Ticket>(head_));
  }
  Record& At(Place place) { return ring_[static_cast<size_t>(place)]; }
  const Record& At(Place place) const { return ring_[static_cast<size_t>(place)]; }
  Channel& ChannelOf(const Record& record) {
    return channels_[static_cast<size_t>(record.channel)];
  }
  bool HasRoom(const Channel& channel) const {
    return channel.counters.in_flight < options_.max_in_flight;
  }
  static bool IsHeld(const Record& record) {
    return !HasEnded(record.stage) && record.progress != Progress::kQueued;
  }
  // Aborts if there is no such bucket.
  Place Find(Ticket ticket) const;

  void Append(Channel& channel, Place place);
  void Offer(const Channel& channel);
  bool MayAdmit(uint64_t sequence, int slot_count) const;
  bool AdmitOne();
  void Admit(Place place);
  void TakeSlots(Record& record);
  void ReturnSlots(Record& record);
  void Begin(Place place);
  void PushReady(Place place);
  bool PopReady(Command* command);
  void GiveTurns(Channel& channel);
  void PassUnmoved(Channel& channel);
  void PassWaiting(Channel& channel);
  void EndOperations(Record& record);
  void End(Place place, Stage outcome);
  void DropStaleOffers();
  void CountWaits();

  EngineOptions options_;
  absl::Status status_;
  EngineCounters counters_;
  int live_ = 0;     // buckets submitted and not ended
  int waiting_ = 0;  // of these, not admitted

  // Buckets by submission sequence number. All that is live lies in [head_, tail_), and head_ is
  // the smallest unfinished one, as ids ascend.
  std::vector<Record> ring_;
  uint64_t place_mask_ = 0;
  uint64_t head_ = 0;
  uint64_t tail_ = 0;
  uint64_t waits_counted_ = 0;  // below this, CountWaits has looked
  BucketId last_id_;

  std::vector<Channel> channels_;
  // By slot cost: the first waiting bucket of every channel that has room. Cancelled ones may lie
  // below the top, never on it; so all lie in [head_, tail_) and are at most look_ahead.
  std::array<SequenceHeap, kMaxSlotsPerBucket> eligible_;
  std::vector<int> free_slots_;  // the last one freed goes out first: its memory is warm
  size_t free_slot_count_ = 0;
  // A queue of commands to give. Each held bucket is in it at most once and nothing is admitted
  // before it is empty, so it needs one place per slot.
  std::vector<Ticket> ready_;
  size_t ready_begin_ = 0;
  size_t ready_count_ = 0;
};

}  // namespace sluice

#endif  // SLUICE_SRC_ENGINE_ENGINE_H_
