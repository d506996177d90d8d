// The gate: decides which buckets of one rank are alive, and in which stage each one is.
//
// The engine only decides. Events go in (Submit, Finish, Fail, Thaw), commands come out (Next).
// It never waits, copies, allocates payload memory, reads a clock, starts a thread, takes a lock or
// includes a vendor header. Equal inputs give equal outputs. Its one rule (docs/gate.md): the
// smallest unfinished bucket always has a slot.
//
// Buckets come in lanes, one per class of urgency. Each lane is fed in ascending order of ids, all
// share the budget, and the rule is about the smallest bucket over all lanes.
#ifndef SLUICE_SRC_ENGINE_ENGINE_H_
#define SLUICE_SRC_ENGINE_ENGINE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "engine/sequence_heap.h"
#include "engine/stage.h"
#include "plan/bucket.h"
#include "tensor/check.h"

namespace sluice {

inline constexpr int kMaxLanes = 4;

struct EngineOptions {
  int channels = 1;       // channels are 0 .. channels-1; 0 for a rank with nothing to do
  int max_in_flight = 2;  // admitted and unfinished buckets per channel, at least 1
  int slots = 16;         // the budget, at least 1: a bucket holds one from admission to its end
  int look_ahead = 4096;  // per lane: from its smallest unfinished bucket to its last submitted one
  int lanes = 1;          // 1 to kMaxLanes
};

// One bucket, as one member sees it.
struct Submission {
  BucketId id;
  int lane = 0;                   // 0 is the most urgent
  int channel = 0;                // belongs to the lane of its first bucket, for good
  StageSet stages = kStageDrain;  // not empty
  int64_t staging_bytes = 0;      // memory used in its slot; 0 where its side is contiguous
  int operations = 1;             // transport operations outstanding while it moves
  uint64_t cookie = 0;            // comes back in commands
};

// Names a live bucket: its lane, and the number of submissions to that lane before it, modulo 2^30.
// So a stale ticket is noticed.
using Ticket = uint32_t;

// "Start this stage of this bucket now."
struct Command {
  Ticket ticket = 0;
  Stage stage = Stage::kWaiting;  // kFilling, kMoving or kDraining
  uint64_t cookie = 0;
  BucketId id;
  int slot = -1;  // the bucket's; below EngineOptions::slots
};

// The obstacle to the smallest bucket that could be admitted next, after Next returned false.
enum class Blocked : uint8_t {
  kNothingWaiting,
  kChannel,  // every waiting bucket's channel is full
  kFrozen,   // some waiting buckets' channels have room, but all of these are in a frozen run
  kBudget,   // some waiting bucket's channel has room, but there is no slot for it
};

// How one bucket stands at this member: for reports across ranks.
struct BucketStanding {
  Stage stage = Stage::kWaiting;  // kDone may stand for any end
  bool admitted = false;          // or ended
  bool under_way = false;         // its stage was commanded and has not finished
};

struct EngineCounters {
  int64_t submitted = 0;
  int64_t admitted = 0;
  int64_t finished = 0;  // reached kDone
  int64_t failed = 0;
  int64_t cancelled = 0;
  // Buckets that were still waiting when Next had returned false, each once. They count by what
  // held them back then: their channel was full, or otherwise the budget.
  int64_t waited_for_channel = 0;
  int64_t waited_for_budget = 0;
  // Now and at most, over all channels. "Held" means admitted and not ended.
  int held_buckets = 0;  // each holds a slot
  int held_buckets_peak = 0;
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

// Admission. Each channel offers its smallest waiting bucket while it has fewer than max_in_flight
// in flight. A bucket is *the smallest* when no unfinished one has a smaller id and no lane can
// still bring a smaller one. It may be admitted whenever a slot is free, and goes first. Another
// bucket may have a free slot only if the smallest one holds a slot, or if there is a second free
// one. So when the smallest one ends, the next one finds its slot. Among those allowed, lower lane
// first, then smaller id.
//
// Lanes. A lane is closed at first: whatever comes in it has an id above all ids submitted so far,
// in any lane. Announce opens it, for ids that are known to come but are not submitted yet; Close
// says that all of those have been. With one lane neither is ever needed. With several, a caller
// announces a run before it submits anything of a later run to another lane. It closes the lane
// when it has submitted all it has announced. While a lane is open and empty at a smaller id, the
// others have to leave one slot free.
//
// Order. Buckets of one channel begin kMoving in id order (a transport matches both sides' n-th
// operations), whatever order their fills finish in. A bucket without kStageMove keeps no one.
//
// Commands for admitted buckets come before new admissions.
//
// Errors are programming errors of the caller, and are checked in release builds as well. An id is
// wrong if it does not ascend in its lane or was not announced. A channel is wrong if it is out of
// range or of another lane. A ticket is wrong if it is not live. Submit is wrong without room.
//
// Cost: O(1) per event and per command, O(log look_ahead) per admission, whatever the number of
// channels. Allocates only in its constructor (and for texts). Copyable, so that tests can branch.
// Thread: one.
class Engine {
 public:
  explicit Engine(const EngineOptions& options);

  const EngineOptions& options() const { return options_; }

  // True if Submit may be called for `lane`. The lane then has fewer than look_ahead buckets from
  // its smallest unfinished one to the last submitted one, and nothing has failed.
  bool CanSubmit(int lane = 0) const;

  // Takes a lane's next bucket. Ids must ascend in a lane. In an open lane they start at the
  // announced id. In a closed lane they are above all ids submitted so far, in any lane.
  Ticket Submit(const Submission& submission);

  // No bucket with an id below `next` will be submitted to `lane` any more; one with this id, or
  // above, may come at any time. Opens a closed lane, and then `next` must be above all ids
  // submitted so far; in an open lane it must not fall.
  void Announce(int lane, const BucketId& next);

  // All that was announced for `lane` has been submitted, or will never be.
  void Close(int lane);

  // The next command, or false if there is none until an event comes in.
  bool Next(Command* command);

  // The stage that was last commanded for `ticket` has been carried out.
  void Finish(Ticket ticket);

  // It could not be: the bucket ends as kFailed and the engine is poisoned with `status`, which
  // must not be OK.
  void Fail(Ticket ticket, const absl::Status& status);

  // The first half of cancelling a run on all its members alike. Returns the largest id of `run`
  // that was ever admitted here, or BucketId() if there is none. Until Thaw, `lane` admits nothing
  // of `run` or of later runs above this id. Admitted buckets and earlier runs go on, and the lane
  // can be fed. A lane freezes one run at a time. The run has buckets here that are not submitted
  // or not ended, or it is the last one that had.
  BucketId Freeze(int lane, uint64_t run);

  // The second half: `last` is the largest id that Freeze returned at any member. Cancels what
  // waits of `run` above `last`, of which nothing may be submitted from now on, and lifts the
  // limit. So each bucket of the run is carried out by all its members or by none.
  void Thaw(int lane, uint64_t run, const BucketId& last);

  // Fails the engine. The first failure is kept in status(). From then on Next gives nothing and
  // nothing can be submitted. Buckets with no stage under way end at once, as kFailed. Finish and
  // Fail are still taken for stages under way. Their buckets then end, as kFailed, and give their
  // slots back. Once idle() is true again, nobody uses the slots any more. To describe the stall,
  // do so before Poison.
  void Poison(const absl::Status& status);

  const absl::Status& status() const { return status_; }
  bool idle() const { return live_ == 0; }  // nothing waiting, nothing held
  Blocked blocked() const;

  const EngineCounters& counters() const { return counters_; }
  const ChannelCounters& channel_counters(int channel) const;
  // Sets every peak to the present value, and every count of events to 0.
  void ResetCounters();

  // The smallest unfinished bucket that was submitted, over all lanes: for watchdogs.
  struct Oldest {
    BucketId id;
    Stage stage = Stage::kWaiting;
    int lane = 0;
    int channel = 0;
    uint64_t cookie = 0;
  };
  bool OldestUnfinished(Oldest* oldest) const;

  // How a bucket of `lane` stands here; nothing if it was not submitted (yet). Ids below the
  // smallest unfinished one of the lane count as done: this rank may not have been a member.
  // O(log look_ahead).
  std::optional<BucketStanding> StandingOf(int lane, const BucketId& id) const;

  // A few lines for people. The smallest unfinished bucket: its stage, ends and channel. Slots
  // held, of all. Live buckets by stage. Each of several lanes. The cause that blocks admission.
  std::string DescribeStall() const;

 private:
  // Places in ring_; kNowhere ends a list.
  using Place = int32_t;
  static constexpr Place kNowhere = -1;
  static constexpr int kLaneBits = 2;  // of a ticket, the lowest
  static_assert(kMaxLanes <= 1 << kLaneBits);

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
    int32_t slot = -1;
    Stage stage = Stage::kDone;  // the last one commanded
    StageSet stages = 0;
    Progress progress = Progress::kQueued;
  };

  // A channel's buckets form a list through Record::next, in id order. Both cursors only advance.
  struct alignas(64) Channel {
    Place waiting = kNowhere;  // the first that is not admitted
    Place unmoved = kNowhere;  // the first that has a move and was not given its turn
    Place last = kNowhere;     // meaningful while a cursor is somewhere
    int lane = -1;             // whose it is; -1 before its first bucket
    ChannelCounters counters;
  };

  // A lane's buckets by submission sequence number. All that is live lies in [head, tail), and
  // head is the smallest unfinished one, as ids ascend.
  struct alignas(64) Lane {
    uint64_t head = 0;
    uint64_t tail = 0;
    uint64_t waits_counted = 0;  // below this, CountWaits has looked
    BucketId last;               // the last one submitted
    BucketId announced;          // meaningful while open
    BucketId retired;            // the largest one before head that was ever admitted
    Place base = 0;              // its first place
    bool open = false;
    bool frozen = false;
    BucketId frozen_from;   // meaningful while frozen: ids not below this one ...
    BucketId frozen_above;  // ... and above this one are not admitted
    // The first waiting bucket of every channel that has room. Cancelled ones may lie below the
    // top, never on it; so all lie in [head, tail) and are at most look_ahead.
    SequenceHeap eligible;

    bool Holds(const BucketId& id) const {
      return frozen && id >= frozen_from && id > frozen_above;
    }
  };

  Lane& LaneAt(int lane) {
    SLUICE_CHECK(lane >= 0 && lane < options_.lanes, "no such lane");
    return lanes_[static_cast<size_t>(lane)];
  }
  const Lane& LaneAt(int lane) const {
    SLUICE_CHECK(lane >= 0 && lane < options_.lanes, "no such lane");
    return lanes_[static_cast<size_t>(lane)];
  }
  int IndexOf(const Lane& lane) const { return static_cast<int>(&lane - lanes_.data()); }
  static size_t LaneIndexOf(Ticket ticket) { return ticket & ((Ticket{1} << kLaneBits) - 1); }
  Lane& LaneOf(const Record& record) { return lanes_[LaneIndexOf(record.ticket)]; }
  Place PlaceOf(const Lane& lane, uint64_t sequence) const {
    return lane.base + static_cast<Place>(sequence & place_mask_);
  }
  Record& At(const Lane& lane, uint64_t sequence) { return At(PlaceOf(lane, sequence)); }
  const Record& At(const Lane& lane, uint64_t sequence) const {
    return At(PlaceOf(lane, sequence));
  }
  static uint64_t SequenceOf(const Lane& lane, const Record& record) {
    return lane.head +
           (static_cast<Ticket>(record.ticket - static_cast<Ticket>(lane.head << kLaneBits)) >>
            kLaneBits);
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

  void CheckOrder(const Lane& lane, const BucketId& id) const;
  void Append(Channel& channel, Place place);
  void Offer(const Channel& channel);
  Place Smallest() const;
  bool AdmitOne();
  bool AdmitFrom(Lane& lane);
  void Admit(Lane& lane);
  void TakeSlot(Record& record);
  void ReturnSlot(Record& record);
  void Begin(Place place);
  void PushReady(Place place);
  bool PopReady(Command* command);
  void GiveTurns(Channel& channel);
  void PassUnmoved(Channel& channel);
  void PassWaiting(Channel& channel);
  void EndOperations(Record& record);
  void End(Place place, Stage outcome);
  void Retire(Lane& lane);
  void DropStaleOffers(Lane& lane);
  void CountWaits();
  BucketId LargestAdmitted(const Lane& lane, uint64_t run) const;
  void DescribeStages(std::string* text) const;
  void DescribeLanes(std::string* text) const;

  EngineOptions options_;
  absl::Status status_;
  EngineCounters counters_;
  int live_ = 0;     // buckets submitted and not ended
  int waiting_ = 0;  // of these, not admitted

  std::vector<Lane> lanes_;
  std::vector<Record> ring_;  // the lanes' rings, one after the other, each place_mask_ + 1 long
  uint64_t place_mask_ = 0;
  BucketId newest_;  // the largest id submitted to any lane
  bool submitted_any_ = false;

  std::vector<Channel> channels_;
  std::vector<int> free_slots_;  // the last one freed goes out first: its memory is warm
  size_t free_slot_count_ = 0;
  // A queue of commands to give, with an entry for each slot. The queue cannot overflow: a held
  // bucket is in it at most once, and nothing is admitted before it is empty.
  std::vector<Place> ready_;
  size_t ready_begin_ = 0;
  size_t ready_count_ = 0;
};

}  // namespace sluice

#endif  // SLUICE_SRC_ENGINE_ENGINE_H_
