// Alarms, questions and answers.
#include "session/peers/watch.h"

#include <algorithm>
#include <utility>

#include "tensor/check.h"
#include "tensor/error_text.h"

namespace sluice {
namespace {

// For a wait of which others know nothing: they answer, or have closed their sessions.
constexpr char kSameCalls[] =
    "; all ranks make the same calls in the same order, and one that raises an error makes fewer";

// Posts taken in by one Poll: what many ranks say at once does not keep this one from its work.
constexpr int kPostsPerPoll = 64;

// How often word of a silent rank is passed on. Two ranks that ask each other would otherwise keep
// it alive between them after the rank has spoken.
constexpr int kMaxHops = 8;

}  // namespace

Watch::Watch(Fabric* fabric, absl::Duration timeout)
    : fabric_(fabric),
      silent_ns_(absl::ToInt64Nanoseconds(timeout) / 8),
      again_ns_(silent_ns_ / 4) {}

absl::Status Watch::Poll(int64_t now_ns) {
  int src = -1;
  for (int i = 0; i < kPostsPerPoll && fabric_->PollPost(&src, &post_); ++i) {
    AlarmRecord alarm;
    QuestionRecord question;
    AnswerRecord answer;
    if (Decode(post_, &alarm)) TakeAlarm(src, alarm);
    if (Decode(post_, &question)) Answer(src, question, now_ns);
    if (Decode(post_, &answer)) TakeAnswer(src, answer);
  }
  std::erase_if(untold_, [this](const auto& alarm) { return TellOne(alarm.dst, *alarm.record); });
  return other_transfer_;
}

void Watch::RaiseAlarm(const absl::Status& status) {
  SLUICE_CHECK(!status.ok(), "an alarm needs an error");
  if (std::exchange(raised_, true)) return;
  Tell(-1, status);
}

void Watch::RaiseStreamAlarm(int stream, const absl::Status& status) {
  SLUICE_CHECK(!status.ok() && stream >= 0, "an alarm needs an error, and a stream");
  Tell(stream, status);
}

void Watch::Tell(int stream, const absl::Status& status) {
  auto record = std::make_shared<AlarmRecord>();
  record->stream = stream;
  record->status = WireStatus<kMaxAlarmBytes>(status);
  // Beginning with its neighbours, so that ranks which fail together do not all tell rank 0 first.
  // A rank that does not poll has room for few: it is told the rest when it has polled. Ranks that
  // it cannot be sent to hear of it from the others' alarms, or by silence.
  for (int step = 1; step < fabric_->size(); ++step) {
    const int dst = (fabric_->rank() + step) % fabric_->size();
    if (!TellOne(dst, *record)) untold_.push_back({dst, record});
  }
}

bool Watch::TellOne(int dst, const AlarmRecord& record) {
  return fabric_->Post(dst, BytesOf(record)).code() != absl::StatusCode::kResourceExhausted;
}

void Watch::TakeAlarm(int src, const AlarmRecord& record) {
  const absl::Status status =
      MakeError(record.status.code(), RankInWords(src), " failed: ", record.status.ToStatus());
  if (record.stream >= 0) {
    stream_alarms_.push_back({record.stream, status});
  } else if (alarm_.ok()) {
    alarm_ = status;
  }
}

void Watch::Ask(const BucketQuestion& question, absl::Span<const int> members, int64_t now_ns) {
  if (asked_.empty() || !(question == question_)) {
    question_ = question;
    ++number_;
    first_ = 0;
  } else if (unasked_ > 0 && MayAskOthers(now_ns)) {
    first_ += kMaxMembersAsked;
  }
  ChooseMembers(members);
  for (const int member : asked_) AskOne(member, now_ns);
}

// One that is late, or does not answer, is what this rank waits for.
bool Watch::MayAskOthers(int64_t now_ns) const {
  return std::all_of(asked_.begin(), asked_.end(), [this, now_ns](int rank) {
    const Peer& peer = peers_.at(rank);
    return HasAnswered(peer) && !peer.waiting && !peer.is_late &&
           now_ns - peer.asked_ns >= again_ns_;
  });
}

void Watch::ChooseMembers(absl::Span<const int> members) {
  asked_.clear();
  const auto others = static_cast<size_t>(std::count_if(
      members.begin(), members.end(), [this](int member) { return member != fabric_->rank(); }));
  for (size_t i = 0; asked_.size() < std::min(others, kMaxMembersAsked); ++i) {
    const int member = members[(first_ + i) % members.size()];
    if (member != fabric_->rank()) asked_.push_back(member);
  }
  unasked_ = others - asked_.size();
}

void Watch::AskOne(int member, int64_t now_ns) {
  Peer& peer = peers_[member];
  // A question that has not been answered is not asked again: it would tell the member nothing new.
  if (peer.waiting) return;
  if (peer.asked == number_ && now_ns - peer.asked_ns < again_ns_) return;
  QuestionRecord record;
  record.number = number_;
  record.question = question_;
  peer.waiting = fabric_->Post(member, BytesOf(record)).ok();
  peer.asked = number_;
  peer.asked_ns = now_ns;
}

void Watch::Answer(int src, const QuestionRecord& record, int64_t now_ns) {
  const BucketReport report =
      witness_ == nullptr ? BucketReport() : witness_->Report(record.question);
  const Lateness lateness = report.is_late ? Lateness{fabric_->rank(), ++times_late_} : lateness_;
  const AnswerRecord answer =
      AnswerOf(record.number, report, FindSilence(now_ns), latest_, lateness);
  // A rank that asks has at most this answer to come, so there is room for it.
  static_cast<void>(fabric_->Post(src, BytesOf(answer)));
  if (report.state == BucketState::kOtherTransfer) {
    NoteOtherTransfer(record.question.id.fields().run, fabric_->rank(), report.transfer, src,
                      record.question.transfer);
  }
}

void Watch::TakeAnswer(int src, const AnswerRecord& record) {
  const auto found = peers_.find(src);
  if (found == peers_.end()) return;
  Peer& peer = found->second;
  peer.waiting = false;
  peer.number = record.number;
  peer.report = ReportOf(record);
  peer.silence = record.silence;
  peer.is_late = record.lateness.rank == src;
  NoteMoves({src, record.moves}, false);
  NoteMoves(record.heard_of, true);
  // A peer that is late with another question is not late with this one.
  if (HasAnswered(peer) || record.lateness.rank != src) NoteLateness(record.lateness);
  if (HasAnswered(peer) && record.state == BucketState::kOtherTransfer) {
    NoteOtherTransfer(question_.id.fields().run, fabric_->rank(), question_.transfer, src,
                      record.transfer);
  }
}

// Counts that are passed on have risen lately. A count of the rank that answers tells of a rise
// only in its second answer.
void Watch::NoteMoves(const Moves& moves, bool passed_on) {
  if (moves.rank < 0 || moves.rank >= fabric_->size() || moves.rank == fabric_->rank()) return;
  const auto [known, is_new] = moves_.try_emplace(moves.rank, moves.count);
  if (is_new ? !passed_on : moves.count <= known->second) return;
  known->second = moves.count;
  latest_ = moves;
  others_moved_ = true;
}

// A rank says so in answer to a question, so a number that has risen is fresh.
void Watch::NoteLateness(const Lateness& lateness) {
  if (lateness.rank < 0 || lateness.rank >= fabric_->size()) return;
  if (lateness.rank == fabric_->rank()) return;
  int64_t& times = times_heard_[lateness.rank];
  if (lateness.times <= times) return;
  times = lateness.times;
  lateness_ = lateness;
  others_late_ = true;
}

bool Watch::TakeLateness(int64_t now_ns) {
  const auto is_silent = [this, now_ns](int rank) { return IsSilent(rank, now_ns); };
  if (!others_late_ || std::any_of(asked_.begin(), asked_.end(), is_silent)) return false;
  return std::exchange(others_late_, false);
}

void Watch::NoteOtherTransfer(uint64_t run, int rank, int transfer, int other, int other_transfer) {
  if (!other_transfer_.ok()) return;
  if (other < rank) {
    std::swap(rank, other);
    std::swap(transfer, other_transfer);
  }
  other_transfer_ =
      DisagreementError("run ", run, " is transfer ", transfer, " on ", RankInWords(rank),
                        " and transfer ", other_transfer, " on ", RankInWords(other),
                        ": all ranks must start the same transfers in the same order");
}

bool Watch::IsSilent(int rank, int64_t now_ns) const {
  const auto found = peers_.find(rank);
  return found != peers_.end() && found->second.waiting &&
         now_ns - found->second.asked_ns >= silent_ns_;
}

Silence Watch::FindSilence(int64_t now_ns) const {
  Silence nearest;
  for (const int rank : asked_) {
    if (IsSilent(rank, now_ns)) return {rank, 0};
    const Peer& peer = peers_.at(rank);
    const bool passed_on = HasAnswered(peer) && peer.silence.rank >= 0 &&
                           peer.silence.rank != fabric_->rank() && peer.silence.hops < kMaxHops;
    if (passed_on && (nearest.rank < 0 || peer.silence.hops + 1 < nearest.hops)) {
      nearest = {peer.silence.rank, peer.silence.hops + 1};
    }
  }
  return nearest;
}

std::string Watch::Advise(int64_t now_ns) const {
  const bool is_any_silent = std::any_of(asked_.begin(), asked_.end(), [&](int rank) {
    return !fabric_->HasLeft(rank) && (!HasAnswered(peers_.at(rank)) || IsSilent(rank, now_ns));
  });
  if (!is_any_silent) return asked_.empty() ? "" : kSameCalls;
  return "; a rank that computes for longer than timeout needs the option progress_thread, or a "
         "longer timeout";
}

ErrorText Watch::Describe(int64_t now_ns, const std::vector<int>* only) const {
  ErrorText text;
  for (const int rank : asked_) {
    if (only != nullptr && std::find(only->begin(), only->end(), rank) == only->end()) continue;
    const Peer& peer = peers_.at(rank);
    text.Add(text.empty() ? "" : "; ", RankInWords(rank), " ");
    if (fabric_->HasLeft(rank)) {
      text.Add("has closed its session");
      continue;
    }
    if (!HasAnswered(peer)) {
      text.Add("has not answered");
      continue;
    }
    if (IsSilent(rank, now_ns)) {
      text.Add("has not answered for ",
               absl::FormatDuration(absl::Nanoseconds(now_ns - peer.asked_ns)),
               "; before, it said that it ");
    }
    text.Add(DescribeReport(question_, peer.report, peer.silence));
  }
  if (only != nullptr) return text;
  const bool was_asked = std::find(asked_.begin(), asked_.end(), lateness_.rank) != asked_.end();
  if (lateness_.rank >= 0 && !was_asked) {
    text.Add("; ", RankInWords(lateness_.rank), ", which holds up others, is late");
  }
  if (unasked_ > 0) text.Add("; ", unasked_, " more members were not asked");
  return text;
}

}  // namespace sluice
