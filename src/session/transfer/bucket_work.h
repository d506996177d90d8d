// What one member does in the stages of one bucket: which copies, which messages, in which order.
//
// Turns roles into operations; when they run is the engine's and the runner's business.
#ifndef SLUICE_SRC_SESSION_BUCKET_WORK_H_
#define SLUICE_SRC_SESSION_BUCKET_WORK_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "engine/engine.h"
#include "session/bucket_sides.h"
#include "session/copy_queue.h"
#include "session/transfer_run.h"
#include "transport/transport.h"

namespace sluice {

// Tags of messages: the run, so that runs which are in flight together keep apart, and the link.
inline constexpr int kRunTags = static_cast<int>(Session::kMaxRunsInFlight);

// A bucket that the gate has let in, on its way through its stages.
class BucketWork {
 public:
  // What the engine is to be told of a bucket of `run`. The cookie names both.
  static Submission SubmissionOf(const TransferRun& run, size_t index);

  static constexpr int kIndexBits = 40;  // of a cookie; the rest is the run's number
  static Session::RunId RunOf(uint64_t cookie) {
    return static_cast<Session::RunId>(cookie >> kIndexBits);
  }
  static size_t IndexOf(uint64_t cookie) {
    return static_cast<size_t>(cookie & ((uint64_t{1} << kIndexBits) - 1));
  }

  // `slot`: the bucket's staging. The run must stay until the bucket has ended.
  void Admit(TransferRun* run, size_t index, Ticket ticket, std::byte* slot);

  // Makes room for the contributions of a fold.
  void ReserveSources(size_t sources) { sources_.reserve(sources); }
  // The bucket has ended.
  void Clear();

  // Null before Admit.
  TransferRun* run() const { return run_; }
  size_t index() const { return index_; }
  Ticket ticket() const { return ticket_; }
  const Bucket& bucket() const { return run_->transfer().plan().buckets[index_]; }
  // Its name in this run.
  BucketId id() const { return bucket().id.WithRun(static_cast<uint64_t>(run_->id())); }

  // Copies and messages under way. While there are any, the stage goes on.
  int* pending() { return &pending_; }

  // Begins what comes next in `stage`: adds copies to `copies`, or messages to `messages`; neither
  // if the stage is over, or it has to wait. To be called when nothing is pending. Messages carry
  // `cookie`. `rounds_max`: how many rounds of messages it may have begun.
  absl::Status Next(Stage stage, int rounds_max, uint64_t cookie, CopyQueue* copies,
                    std::vector<TransportOp>* messages);

  // A link matches messages by their order, so the buckets of a channel have to begin them in its
  // order. All of them have the same rounds: none may begin one that the bucket before it has not.
  int rounds() const { return rounds_; }
  bool waits() const { return waits_; }

  // True if `stage`, which is over, was the bucket's last.
  bool EndsWith(Stage stage) const { return NextStage(stage, stages_) == Stage::kDone; }

 private:
  // The steps of a move, in order; each member has some of them.
  enum class Step : uint8_t {
    kGive,     // contributor: send to the owner
    kCollect,  // owner: take and add one contribution, then the next
    kGiveSum,  // contributor that adds those of others: send the sum to who adds next
    kCast,     // owner: from the source dtype to that of the wire
    kReceive,  // destination: from its parent
    kForward,  // source, owner, relay: to the children
    kOver,
  };

  const Plan& plan() const { return run_->transfer().plan(); }
  const Channel& channel() const { return plan().channels[static_cast<size_t>(bucket().channel)]; }
  absl::Status Move(uint64_t cookie, CopyQueue* copies, std::vector<TransportOp>* messages);
  absl::Status Collect(uint64_t cookie, CopyQueue* copies, std::vector<TransportOp>* messages);
  absl::Status CollectAtOnce(uint64_t cookie, CopyQueue* copies,
                             std::vector<TransportOp>* messages);
  void AddFold(uint64_t cookie, std::vector<TransportOp>* messages);
  absl::Status AddContribution(int64_t number, CopyQueue* copies);
  absl::Status Merge(const Level& level, bool last, const std::byte* from, std::byte* accumulator,
                     CopyQueue* copies);
  absl::Span<const Level> levels() const;
  // How many contributions an accumulator of this level is for.
  int64_t AddedTo(size_t level) const;
  const Link& LinkOf(int64_t number) const;  // of an owner: where contribution `number` comes from
  bool IsOwn(int64_t number) const { return LinkOf(number).peer < 0; }
  // True if contribution `number` begins an accumulator, is this rank's own and stays in source
  // memory: the next one is received in its place, and this one added to it. That gives the same
  // bits, as far as an operation commutes; of equal zeros, max and min keep the first.
  bool FoldsItselfLast(int64_t number) const;
  absl::Status CastResult(CopyQueue* copies);
  absl::Status Pack(std::byte* wire, bool contribution, CopyQueue* copies);
  absl::Status Unpack(const std::byte* wire, CopyQueue* copies);
  absl::Status CopyLocally(CopyQueue* copies);
  // What a message is about, beside its link and memory.
  struct Letter {
    int64_t bytes = 0;
    int64_t hop = 0;
    uint64_t cookie = 0;
  };
  void Send(const Link& link, const WireMemory& memory, const Letter& letter,
            std::vector<TransportOp>* messages);
  void Receive(const Link& link, const WireMemory& memory, const Letter& letter,
               std::vector<TransportOp>* messages);
  void AddMessage(TransportOp::Kind kind, const Link& link, const WireMemory& memory,
                  const Letter& letter, std::vector<TransportOp>* messages);
  // The hops of a bucket: its contributions one after another, then the levels of its tree.
  int64_t HopOf(int64_t number) const;
  int64_t HopToChildren() const;
  int TagOf(const Link& link) const;

  // Whether so many rounds of messages may begin, which then have.
  bool BeginRounds(int rounds);
  bool BeginRound() { return BeginRounds(1); }

  DeviceKind staging() const { return run_->transfer().memory.staging; }
  std::byte* Area(size_t number) const;
  std::byte* Accumulator(size_t level) const { return Area(level); }
  std::byte* Incoming() const { return Area(static_cast<size_t>(channel().level_count)); }
  bool ResultIsCast() const;
  // What its children get, and what it unpacks.
  WireMemory Wire() const;

  TransferRun* run_ = nullptr;
  size_t index_ = 0;
  Ticket ticket_ = 0;
  StageSet stages_ = 0;
  bool drops_ = false;  // what it gets has nowhere to go
  bool folds_ = false;  // as in BucketPart
  std::byte* slot_ = nullptr;
  WireMemory src_;  // source memory, where it can be sent from as it lies; or null
  WireMemory dst_;  // destination memory, where it can be received into; or null
  int pending_ = 0;
  bool begun_ = false;  // fill or drain
  int rounds_ = 0;      // of messages, begun
  int rounds_max_ = 0;
  bool waits_ = false;  // for the next round
  Step step_ = Step::kGive;
  int64_t contribution_ = 0;  // kCollect: which one
  bool arrived_ = false;      // it is here, and not yet added
  Fold fold_;                 // of its sources
  std::vector<FoldSource> sources_;
};

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_BUCKET_WORK_H_
