// Tells ranks beside their transfers that one of them has failed. When nothing moves, ranks
// also tell where each member of a bucket stands with it. All of it travels by the fabric's posts.
#ifndef SLUICE_SRC_SESSION_PEERS_WATCH_H_
#define SLUICE_SRC_SESSION_PEERS_WATCH_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "session/peers/bucket_report.h"
#include "session/peers/watch_record.h"
#include "sluice/fabric.h"

namespace sluice {

// A rank's knowledge of itself: implemented by the session.
class Witness {
 public:
  virtual ~Witness() = default;
  // Reports how far this rank is with the bucket. Called from Watch::Poll.
  virtual BucketReport Report(const BucketQuestion& question) const = 0;
  // The number of the last run that this rank has started; 0: none.
  virtual int64_t last_run() const = 0;
};

// One rank's end. Between any two ranks one question and its answer at most are on their way. So
// the alarm always finds room among the posts that a fabric keeps. Times are MonotonicNs's.
// Allocates only while there is something to tell. Thread: the session's.
class Watch {
 public:
  // The most members of a bucket that are asked at once. Once all of these have answered and none
  // is late, the next ones are asked.
  static constexpr size_t kMaxMembersAsked = 64;

  // `fabric` must outlive this object. `timeout` is the session's. A member that does not answer
  // for an eighth of the timeout is silent. One that answers is asked again after a quarter of that
  // eighth. So word passes along many ranks that wait for one another before the first of them
  // gives up.
  Watch(Fabric* fabric, absl::Duration timeout);

  // Sets the witness that answers from now on. It must outlive this object or be replaced. Null:
  // this rank says no more than that it is there.
  void set_witness(const Witness* witness) { witness_ = witness; }
  // As of the witness; 0 without one.
  int64_t last_run() const { return witness_ == nullptr ? 0 : witness_->last_run(); }

  // Takes in what has come, and answers. To be called whenever the session makes progress or waits,
  // for whatever reason. FailedPrecondition, from then on, if a rank has started another transfer
  // as the same run. The error names both ranks and both transfers, in the same words on both.
  absl::Status Poll(int64_t now_ns);

  // Tells every other rank that this one has failed, of which `status` (not OK) is the cause. Best
  // effort; the first call counts. The message is cut to kMaxAlarmBytes.
  void RaiseAlarm(const absl::Status& status);
  // The same of one stream alone, at most once for each.
  void RaiseStreamAlarm(int stream, const absl::Status& status);
  // The first alarm of another rank that Poll has taken in: "rank 3 failed: ..." with the cause's
  // code. OK if there is none.
  const absl::Status& alarm() const { return alarm_; }
  // Streams that other ranks' alarms are about, since the last call.
  struct StreamAlarm {
    int stream;
    absl::Status status;
  };
  std::vector<StreamAlarm> TakeStreamAlarms() {
    return std::exchange(stream_alarms_, std::vector<StreamAlarm>());
  }

  // Asks the members of a bucket, other than this rank, where they stand with it. Does nothing most
  // of the time, so it may be called on every idle poll. Another question than before: the answers
  // so far are forgotten.
  void Ask(const BucketQuestion& question, absl::Span<const int> members, int64_t now_ns);
  // True if a rank that this one waits for has got on since the last call, as far as answers tell.
  // This one waits for a rank directly, or through ranks that it waits for in turn. Each move is
  // told once. So ranks that only wait for each other do not keep each other waiting.
  bool TakeMoves() { return std::exchange(others_moved_, false); }
  // True if a rank that this one waits for, in the same ways, has said since the last call that it
  // is late. But while a rank that was asked keeps silent, this stays to be told: a rank that is
  // late does not excuse it. Each saying is told once, as with moves.
  bool TakeLateness(int64_t now_ns);
  // There is progress again.
  void StopAsking() {
    asked_.clear();
    lateness_ = Lateness();
    others_late_ = false;
  }

  // The members' answers, for an error: "rank 3 has it in stage moving; rank 7 has not answered".
  // Empty if nobody was asked. `only`, if not null: of these ranks alone.
  ErrorText Describe(int64_t now_ns, const std::vector<int>* only = nullptr) const;
  // The words after it that say what helps, where a member has not answered. Else empty.
  std::string Advise(int64_t now_ns) const;

 private:
  // The questions and answers that this rank and another have exchanged.
  struct Peer {
    bool waiting = false;  // a question has left that was not answered
    uint32_t asked = 0;    // the number of the last question that was to go there
    int64_t asked_ns = 0;  // when
    uint32_t number = 0;   // of the last question it answered
    BucketReport report;   // its answer
    Silence silence;       // that it has heard of
    bool is_late = false;  // by its answer
  };

  // An alarm that its receiver had no room for.
  struct Untold {
    int dst;
    std::shared_ptr<const AlarmRecord> record;
  };

  void Tell(int stream, const absl::Status& status);
  // Tells `dst`, as far as the fabric can. False if it has no room for that now.
  bool TellOne(int dst, const AlarmRecord& record);
  void TakeAlarm(int src, const AlarmRecord& record);
  void Answer(int src, const QuestionRecord& record, int64_t now_ns);
  void TakeAnswer(int src, const AnswerRecord& record);
  void AskOne(int member, int64_t now_ns);
  void NoteMoves(const Moves& moves, bool passed_on);
  void NoteLateness(const Lateness& lateness);
  bool MayAskOthers(int64_t now_ns) const;
  void ChooseMembers(absl::Span<const int> members);
  void NoteOtherTransfer(uint64_t run, int rank, int transfer, int other, int other_transfer);
  // True if `rank` was asked and has kept silent for a while.
  bool IsSilent(int rank, int64_t now_ns) const;
  // Finds the rank that holds this one up, as far as this one can tell; passed on to those who ask.
  Silence FindSilence(int64_t now_ns) const;
  bool HasAnswered(const Peer& peer) const { return peer.number == number_; }

  Fabric* const fabric_;
  const int64_t silent_ns_;
  const int64_t again_ns_;
  const Witness* witness_ = nullptr;
  std::vector<std::byte> post_;  // scratch

  bool raised_ = false;
  std::vector<Untold> untold_;
  absl::Status alarm_;
  std::vector<StreamAlarm> stream_alarms_;
  absl::Status other_transfer_;

  BucketQuestion question_;
  uint32_t number_ = 0;     // of question_; 0: there was none
  std::vector<int> asked_;  // the members asked about question_; empty: nobody
  size_t unasked_ = 0;      // members left out, being too many
  size_t first_ = 0;        // where among the members those that are asked begin
  std::map<int, Peer> peers_;
  std::map<int, int64_t> moves_;  // by rank, as often as heard of
  Moves latest_;                  // of them, the one that rose last
  bool others_moved_ = false;
  int64_t times_late_ = 0;              // that this rank has said so
  std::map<int, int64_t> times_heard_;  // by rank, that it has said so, as far as heard of
  Lateness lateness_;                   // of them, the one that rose last; while this rank asks
  bool others_late_ = false;
};

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_PEERS_WATCH_H_
