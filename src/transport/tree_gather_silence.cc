// Names who is silent while an all-gather does not end, by hints of those that wait.
#include <algorithm>

#include "tensor/round.h"
#include "transport/tree_gather.h"

namespace sluice {
namespace {

// The next beat comes after this part of the wait so far. A hint reaches all ranks of thousands
// within ten beats or so. So what a rank knows of the others is never older than half of the wait.
constexpr int64_t kBeatsPerWait = 32;
// So many beats that follow news of a rank come soon, so that all ranks have the news soon.
constexpr int kQuickBeats = 5;

// Some number for each rank and beat. Ranks that all turned to the same neighbours in the same beat
// would leave out those whose neighbours on that side are silent.
size_t Draw(int rank, size_t beat) {
  uint64_t bits = (static_cast<uint64_t>(rank) << 32 | beat) * 0x9e3779b97f4a7c15;
  bits ^= bits >> 29;
  return static_cast<size_t>(bits * 0xbf58476d1ce4e5b9 >> 32);
}

}  // namespace

void TreeGather::AddFriend(Gather* gather, int rank) const {
  Rank& other = gather->ranks[static_cast<size_t>(rank)];
  if (rank == rank_ || other.is_friend) return;
  other.is_friend = true;
  gather->friends.push_back(rank);
}

uint32_t TreeGather::ElapsedMs() const {
  const int64_t elapsed_ms = (now_ns_ - started_ns_) / 1'000'000;
  return static_cast<uint32_t>(std::min<int64_t>(elapsed_ms + 1, UINT32_MAX));
}

void TreeGather::Hear(int rank) { lives_[static_cast<size_t>(rank)].heard_ms = ElapsedMs(); }

void TreeGather::HearState(Gather* gather, int rank, TreeLife::State state) {
  Rank& other = gather->ranks[static_cast<size_t>(rank)];
  if (rank == rank_ || state <= other.state) return;
  other.state = state;
  Hear(rank);
  if (!slow_ || gather != &now_) return;
  quick_beats_ = kQuickBeats;
  beat_ns_ = std::min(beat_ns_, now_ns_ + patience_ns_);
}

// A hint of the gather before this one comes from a rank that waits in that one. Such a rank cannot
// begin this gather, but is not silent.
void TreeGather::TakeHint(int src, const TreeMessage& hint) {
  for (int rank = 0; rank < hint.count; ++rank) {
    Life& life = lives_[static_cast<size_t>(rank)];
    const uint32_t beats = hint.LifeOf(rank).beats;
    if (rank == rank_ || beats <= life.beats) continue;
    life.beats = beats;
    Hear(rank);
  }
  Hear(src);
  if (under_way_) AddFriend(&now_, src);
  const bool is_next = hint.gather == number_ + 1;
  if (!is_next && !(under_way_ && hint.gather == number_)) return;
  Gather& gather = is_next ? next_ : now_;
  Prepare(&gather);
  AddFriend(&gather, src);
  HearState(&gather, src, TreeLife::kStarted);
  for (int rank = 0; rank < hint.count; ++rank) {
    const TreeLife::State state = hint.LifeOf(rank).state;
    HearState(&gather, rank, state);
    if (is_next && under_way_ && state != TreeLife::kUnknown) {
      HearState(&now_, rank, TreeLife::kDone);
    }
  }
  if (is_next && under_way_) HearState(&now_, src, TreeLife::kDone);
  // A rank that has not heard of this one joins late, or is out of reach of the usual hints.
  if (is_next || !slow_) return;
  Rank& sender = now_.ranks[static_cast<size_t>(src)];
  const bool knows = hint.count > 0 && hint.LifeOf(rank_).state != TreeLife::kUnknown;
  if (knows || sender.answered) return;
  sender.answered = true;
  HintLater(src);
}

void TreeGather::HintLater(int rank) {
  now_.ranks[static_cast<size_t>(rank)].hinted = true;
  hints_.push_back(rank);
}

// Hints go round among friends that have been heard of. A friend that has not been heard of gets
// one, as it may have started without this rank's knowledge. So do all ranks from this one up to
// the next one that has been heard of. Whatever ranks have started, each of them then knows the
// next one, so that there is a way for hints from each to each other.
void TreeGather::Beat() {
  Life& life = lives_[static_cast<size_t>(rank_)];
  life.beats = std::min(life.beats + 1, TreeLife::kMaxBeats);
  Rank& own = now_.ranks[static_cast<size_t>(rank_)];
  const bool to_all = !slow_ || (IsReady() && own.state != TreeLife::kDone);
  if (IsReady()) own.state = TreeLife::kDone;
  slow_ = true;
  const bool is_quick = quick_beats_ > 0;
  if (is_quick) --quick_beats_;
  const int64_t pause_ns = is_quick ? 0 : (now_ns_ - started_ns_) / kBeatsPerWait;
  beat_ns_ = now_ns_ + std::max(patience_ns_, pause_ns);
  hints_.clear();
  // Friends in their order lie nearer or further. One of each part of them soon reaches all ranks.
  const size_t count = now_.friends.size();
  const size_t part = CeilDiv(count, kHintsPerBeat);
  const size_t first = Draw(rank_, turn_++);
  for (size_t begin = 0; begin < count; begin += part) {
    for (size_t i = 0; i < part; ++i) {
      const size_t index = begin + (first + i) % part;
      if (index >= count || !IsHeard(now_.friends[index])) continue;
      HintLater(now_.friends[index]);
      if (!to_all) break;
    }
  }
  for (const int rank : now_.friends) {
    if (!IsHeard(rank) && !now_.ranks[static_cast<size_t>(rank)].hinted) HintLater(rank);
  }
  for (int distance = 1; distance < size_; ++distance) {
    const int rank = After(rank_, distance);
    if (IsHeard(rank)) break;
    if (now_.ranks[static_cast<size_t>(rank)].hinted) continue;
    AddFriend(&now_, rank);
    HintLater(rank);
  }
}

bool TreeGather::NextHint(absl::FunctionRef<bool(int)> busy, Outgoing* out) {
  while (!hints_.empty()) {
    const int dst = hints_.back();
    hints_.pop_back();
    if (busy(dst)) {
      now_.ranks[static_cast<size_t>(dst)].hinted = false;
      continue;
    }
    out->dst = dst;
    out->is_needed = false;
    // A message that nobody may take for a long time is short.
    TreeMessage message;
    message.gather = number_;
    message.is_hint = true;
    message.count = IsHeard(dst) ? size_ : 0;
    WriteTreeHeader(message, size_, &out->bytes);
    for (size_t rank = 0; rank < static_cast<size_t>(message.count); ++rank) {
      AppendTreeLife({now_.ranks[rank].state, lives_[rank].beats}, &out->bytes);
    }
    return true;
  }
  return false;
}

uint32_t TreeGather::SilenceMs(int rank) const {
  if (rank == rank_ || now_.ranks[static_cast<size_t>(rank)].state == TreeLife::kDone) return 0;
  return ElapsedMs() - lives_[static_cast<size_t>(rank)].heard_ms;
}

// By rank: 1 where this rank's wait may be the fault of that one. Its record is not here, or it is
// one that would hand on such a record. Or it keeps this rank from sending.
std::vector<uint8_t> TreeGather::Suspects() const {
  std::vector<uint8_t> suspects(static_cast<size_t>(size_));
  const auto suspect = [&suspects](int rank) { suspects[static_cast<size_t>(rank)] = 1; };
  for (int distance = near_; distance < size_; ++distance) {
    const int rank = Before(rank_, distance);
    if (now_.ranks[static_cast<size_t>(rank)].bytes >= 0) continue;
    suspect(rank);
    for (int64_t unit = kRadix; unit <= distance; unit *= kRadix) {
      suspect(Before(rank_, static_cast<int>(distance - distance % unit)));
    }
  }
  for (size_t i = 0; i < steps_.size() && near_ == size_; ++i) {
    if (sent_[i] < CountOf(steps_[i])) suspect(After(rank_, steps_[i]));
  }
  return suspects;
}

std::vector<int> TreeGather::Missing() const {
  std::vector<int> suspects;
  uint32_t longest_ms = 0;
  bool all_heard = true;
  const std::vector<uint8_t> is_suspect = Suspects();
  for (int rank = 0; rank < size_; ++rank) {
    if (is_suspect[static_cast<size_t>(rank)] == 0) continue;
    suspects.push_back(rank);
    longest_ms = std::max(longest_ms, SilenceMs(rank));
    all_heard = all_heard && IsHeard(rank);
  }
  if (near_ == size_) return suspects;
  std::erase_if(suspects, [&](int rank) {
    if (longest_ms >= kSilentMs) return SilenceMs(rank) < longest_ms / 2;
    return all_heard ? now_.ranks[static_cast<size_t>(rank)].bytes >= 0 : IsHeard(rank);
  });
  return suspects;
}

}  // namespace sluice
