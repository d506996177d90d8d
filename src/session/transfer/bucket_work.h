// One member's work in the stages of one bucket: which copies, which messages, in which order.
//
// engine/move.h decides the next step of a move, and this turns the step into operations. The
// engine and the runner decide when these run.
#ifndef SLUICE_SRC_SESSION_TRANSFER_BUCKET_WORK_H_
#define SLUICE_SRC_SESSION_TRANSFER_BUCKET_WORK_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/engine.h"
#include "engine/move.h"
#include "session/base/copy_queue.h"
#include "session/base/run_id.h"
#include "session/base/stage_operations.h"
#include "session/transfer/bucket_sides.h"
#include "session/transfer/transfer_run.h"
#include "sluice/transport.h"

namespace sluice {

// Tags of messages: the run, so that runs which are in flight together keep apart, and the link.
inline constexpr int kRunTags = static_cast<int>(Session::kMaxRunsInFlight);

// A bucket that the gate has let in, on its way through its stages.
class BucketWork {
 public:
  // Describes a bucket of `run` for the engine. The cookie names both.
  static Submission SubmissionOf(const TransferRun& run, size_t index);

  static constexpr int kIndexBits = 40;  // of a cookie; the rest is the run's number
  static RunId RunOf(uint64_t cookie) { return static_cast<RunId>(cookie >> kIndexBits); }
  static size_t IndexOf(uint64_t cookie) {
    return static_cast<size_t>(cookie & ((uint64_t{1} << kIndexBits) - 1));
  }

  // `slot`: the bucket's staging. The run must stay until the bucket has ended.
  void Admit(TransferRun* run, size_t index, std::byte* slot);

  // Makes room for the contributions of a fold.
  void ReserveSources(size_t sources) { sources_.reserve(sources); }
  // The bucket has ended.
  void Clear();

  // Null before Admit.
  TransferRun* run() const { return run_; }
  size_t index() const { return index_; }
  const Bucket& bucket() const { return run_->transfer().plan().buckets[index_]; }
  // Its name in this run.
  BucketId id() const { return bucket().id.WithRun(static_cast<uint64_t>(run_->id())); }

  // Begins what comes next in `stage`: adds copies or messages to `to`; neither if the stage is
  // over, or it has to wait. To be called when nothing is pending. `rounds_max`: how many rounds of
  // messages it may have begun.
  absl::Status Next(Stage stage, int rounds_max, const StageOperations& to);

  // A link matches messages by their order, so the buckets of a channel have to begin them in its
  // order. All of them have the same rounds: none may begin one that the bucket before it has not.
  int rounds() const { return move_.rounds; }
  bool waits() const { return waits_; }

  StageSet stages() const { return stages_; }

 private:
  const Plan& plan() const { return run_->transfer().plan(); }
  const Channel& channel() const { return plan().channels[static_cast<size_t>(bucket().channel)]; }
  // This member's part in the bucket's move; src_ is known.
  MoveShape Shape(bool folds) const;
  absl::Status Move(int rounds_max, const StageOperations& to);
  absl::Status CarryOut(const MoveAction& action, const StageOperations& to);
  void AddFold(const StageOperations& to);
  absl::Status AddContribution(const MoveAction& action, CopyQueue* copies);
  absl::Status AddToLevel(size_t level, int64_t place, const std::byte* from, CopyQueue* copies);
  absl::Status Merge(const Level& level, bool last, const std::byte* from, std::byte* accumulator,
                     CopyQueue* copies);
  absl::Span<const Level> levels() const;
  // How many contributions an accumulator of this level is for.
  int64_t AddedTo(size_t level) const;
  const Link& LinkOf(int64_t number) const;  // of an owner: where contribution `number` comes from
  bool IsOwn(int64_t number) const { return LinkOf(number).peer < 0; }
  absl::Status CastResult(CopyQueue* copies);
  // True if copies can be added now. Otherwise the work that is being added is cut here, and goes
  // on at the next call of Next. The adder begins anew at next_level_ and next_chunk_.
  absl::StatusOr<bool> MayAdd(CopyQueue* copies);
  // Has `add` add what is to be done with each chunk, unless it is cut.
  template <class AddOne>
  absl::Status AddChunks(CopyQueue* copies, const AddOne& add);
  // Whether the run's copy program may do a stage's copies.
  bool Replays(bool writes_destinations) const;
  absl::Status Pack(std::byte* wire, bool contribution, CopyQueue* copies);
  absl::Status Unpack(const std::byte* wire, CopyQueue* copies);
  absl::Status CopyLocally(CopyQueue* copies);
  // The size and hop of a message, beside its link and memory.
  struct Letter {
    int64_t bytes = 0;
    int64_t hop = 0;
  };
  void Send(const Link& link, const WireMemory& memory, const Letter& letter,
            const StageOperations& to);
  void Receive(const Link& link, const WireMemory& memory, const Letter& letter,
               const StageOperations& to);
  void AddMessage(TransportOp::Kind kind, const Link& link, const WireMemory& memory,
                  const Letter& letter, const StageOperations& to);
  // The hops of a bucket: its contributions one after another, then the levels of its tree.
  int64_t HopOf(int64_t number) const;
  int64_t HopToChildren() const;
  int TagOf(const Link& link) const;

  DeviceKind staging() const { return run_->transfer().memory.staging; }
  std::byte* Area(size_t number) const;
  std::byte* Accumulator(size_t level) const { return Area(level); }
  std::byte* Incoming() const { return Area(static_cast<size_t>(channel().level_count)); }
  bool ResultIsCast() const;  // of an owner
  // The bytes that its children get, and that it unpacks.
  WireMemory Wire() const;

  TransferRun* run_ = nullptr;
  size_t index_ = 0;
  StageSet stages_ = 0;
  bool drops_ = false;  // what it gets has nowhere to go
  std::byte* slot_ = nullptr;
  WireMemory src_;         // source memory, where it can be sent from as it lies; or null
  WireMemory dst_;         // destination memory, where it can be received into; or null
  bool begun_ = false;     // fill or drain
  bool is_cut_ = false;    // for lack of room with the device
  size_t next_chunk_ = 0;  // to be added
  size_t next_level_ = 0;  // of a contribution, to be added to
  MoveShape shape_;
  MoveState move_;
  MoveAction action_;   // of the move, that is carried out now
  bool waits_ = false;  // for the next round
  Fold fold_;           // of its sources
  std::vector<FoldSource> sources_;
};

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_TRANSFER_BUCKET_WORK_H_
