// All-gathers in few messages: which records go where when. tree_gather_silence.cc has the hints.
#include "transport/tree_gather.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "sluice/fabric.h"
#include "tensor/check.h"
#include "tensor/error_text.h"
#include "transport/op_check.h"

namespace sluice {
namespace {

std::vector<int> StepsOf(int size) {
  std::vector<int> steps;
  for (int64_t unit = 1; unit < size; unit *= TreeGather::kRadix) {
    for (int64_t step = unit; step < size && step < unit * TreeGather::kRadix; step += unit) {
      steps.push_back(static_cast<int>(step));
    }
  }
  return steps;
}

// One of the last digit with which a step is written: so many ranks are nearer to the next step.
int UnitOf(int step) {
  int64_t unit = 1;
  while (step % (unit * TreeGather::kRadix) == 0) unit *= TreeGather::kRadix;
  return static_cast<int>(unit);
}

}  // namespace

TreeGather::TreeGather(int rank, int size, size_t max_message_bytes, int64_t patience_ns)
    : rank_(rank),
      size_(size),
      max_message_bytes_(max_message_bytes),
      patience_ns_(patience_ns),
      steps_(StepsOf(size)),
      lives_(static_cast<size_t>(size)) {
  SLUICE_CHECK(size >= 1 && rank >= 0 && rank < size, "there is no such rank");
  SLUICE_CHECK(max_message_bytes >= MinMessageBytes(size), "messages are too short");
}

size_t TreeGather::MinMessageBytes(int size) {
  return TreeMessage::kHeaderBytes + std::max(TreeMessage::kLifeBytes * static_cast<size_t>(size),
                                              TreeMessage::kLengthBytes + Fabric::kMaxRecordBytes);
}

int TreeGather::After(int rank, int distance) const {
  return static_cast<int>((int64_t{rank} + distance) % size_);
}

int TreeGather::Before(int rank, int distance) const {
  return static_cast<int>((int64_t{rank} - distance + size_) % size_);
}

int TreeGather::CountOf(int step) const { return std::min(UnitOf(step), size_ - step); }

void TreeGather::Prepare(Gather* gather) const {
  if (!gather->ranks.empty()) return;
  gather->ranks.resize(static_cast<size_t>(size_));
  for (const int step : steps_) {
    AddFriend(gather, After(rank_, step));
    AddFriend(gather, Before(rank_, step));
  }
}

void TreeGather::Start(absl::Span<const std::byte> record, int64_t now_ns) {
  SLUICE_CHECK(!under_way_, "an all-gather is under way");
  SLUICE_CHECK(record.size() <= Fabric::kMaxRecordBytes, "the record is too long");
  under_way_ = true;
  ++number_;
  std::swap(now_, next_);
  next_.ranks.clear();
  next_.bytes.clear();
  next_.friends.clear();
  Prepare(&now_);
  now_ns_ = now_ns;
  started_ns_ = now_ns;
  beat_ns_ = now_ns + patience_ns_;
  slow_ = false;
  turn_ = 0;
  quick_beats_ = 0;
  hints_.clear();
  for (size_t i = 0; i < lives_.size(); ++i) {
    lives_[i].heard_ms = now_.ranks[i].state == TreeLife::kUnknown ? 0 : 1;
  }
  Rank& own = now_.ranks[static_cast<size_t>(rank_)];
  own.offset = static_cast<uint32_t>(now_.bytes.size());
  own.bytes = static_cast<int16_t>(record.size());
  own.state = TreeLife::kStarted;
  now_.bytes.insert(now_.bytes.end(), record.begin(), record.end());
  near_ = 0;
  sent_.assign(steps_.size(), 0);
  steps_left_ = static_cast<int>(steps_.size());
  Advance();
}

void TreeGather::Advance() {
  while (near_ < size_ && now_.ranks[static_cast<size_t>(Before(rank_, near_))].bytes >= 0) ++near_;
}

absl::Status TreeGather::Take(int src, absl::Span<const std::byte> bytes) {
  SLUICE_CHECK(src >= 0 && src < size_ && src != rank_, "there is no such sender");
  const auto refusal = [&](absl::string_view why) {
    return MakeError(absl::StatusCode::kInvalidArgument, "message of an all-gather from ",
                     RankInWords(src), " to ", RankInWords(rank_), ": ", why);
  };
  if (bytes.size() > max_message_bytes_) {
    return refusal(absl::StrCat(bytes.size(), " bytes, but at most ", max_message_bytes_));
  }
  const absl::StatusOr<TreeMessage> message = ReadTreeMessage(bytes, size_);
  if (!message.ok()) return refusal(message.status().message());
  const bool is_now = under_way_ && message->gather == number_;
  const bool is_next = message->gather == number_ + 1;
  if (message->is_hint && message->gather <= number_ + 1) {
    TakeHint(src, *message);
    return absl::OkStatus();
  }
  if (!is_now && !is_next) {
    return refusal(absl::StrCat("of gather ", message->gather, ", but this rank is ",
                                under_way_ ? "in gather " : "past gather ", number_));
  }
  Gather& gather = is_now ? now_ : next_;
  Prepare(&gather);
  if (absl::Status status = Check(src, *message, gather); !status.ok()) {
    return refusal(status.message());
  }
  Store(src, *message, &gather);
  HearState(&gather, src, TreeLife::kStarted);
  if (is_now) Advance();
  // A rank that has begun the next gather needs nothing of this one.
  if (is_next && under_way_) HearState(&now_, src, TreeLife::kDone);
  return absl::OkStatus();
}

// Whether these records may come from there, and have not come before.
absl::Status TreeGather::Check(int src, const TreeMessage& message, const Gather& gather) const {
  const int step = Before(rank_, src);
  if (!std::binary_search(steps_.begin(), steps_.end(), step)) {
    return absl::InvalidArgumentError("its records go elsewhere");
  }
  if (message.first + message.count > CountOf(step)) {
    return absl::InvalidArgumentError("it has other records than it should");
  }
  for (int i = 0; i < message.count; ++i) {
    const int rank = Before(src, message.first + i);
    if (gather.ranks[static_cast<size_t>(rank)].bytes >= 0) {
      return MakeError(absl::StatusCode::kInvalidArgument, "the record of ", RankInWords(rank),
                       " comes again");
    }
  }
  return absl::OkStatus();
}

void TreeGather::Store(int src, const TreeMessage& message, Gather* gather) {
  size_t offset = gather->bytes.size();
  gather->bytes.insert(gather->bytes.end(), message.body.begin(), message.body.end());
  for (int i = 0; i < message.count; ++i) {
    const int number = Before(src, message.first + i);
    Rank& rank = gather->ranks[static_cast<size_t>(number)];
    rank.offset = static_cast<uint32_t>(offset);
    rank.bytes = static_cast<int16_t>(message.RecordBytes(i));
    offset += message.RecordBytes(i);
    HearState(gather, number, TreeLife::kStarted);
  }
}

bool TreeGather::IsReady() const { return under_way_ && near_ == size_ && steps_left_ == 0; }

bool TreeGather::Next(int64_t now_ns, int* dst, std::vector<std::byte>* message) {
  Outgoing out;
  if (!Next(
          now_ns, [](int) { return false; }, &out))
    return false;
  *dst = out.dst;
  *message = std::move(out.bytes);
  return true;
}

bool TreeGather::Next(int64_t now_ns, absl::FunctionRef<bool(int)> busy, Outgoing* out) {
  now_ns_ = now_ns;
  if (!under_way_) return false;
  if (steps_left_ > 0 && NextRecords(busy, out)) return true;
  const bool is_done = now_.ranks[static_cast<size_t>(rank_)].state == TreeLife::kDone;
  if (now_ns >= beat_ns_ || (slow_ && !is_done && IsReady())) Beat();
  return NextHint(busy, out);
}

bool TreeGather::NextRecords(absl::FunctionRef<bool(int)> busy, Outgoing* out) {
  for (size_t i = 0; i < steps_.size(); ++i) {
    const int count = CountOf(steps_[i]);
    if (sent_[i] == count || near_ < count) continue;
    const int dst = After(rank_, steps_[i]);
    if (busy(dst)) continue;
    out->dst = dst;
    out->is_needed = true;
    sent_[i] += WriteRecords(sent_[i], count, &out->bytes);
    if (sent_[i] == count) --steps_left_;
    return true;
  }
  return false;
}

// Writes a message of records, from the rank `first` before this one on, up to `end`. Returns how
// many: as many as one message holds.
int TreeGather::WriteRecords(int first, int end, std::vector<std::byte>* bytes) const {
  const auto rank_at = [this](int distance) -> const Rank& {
    return now_.ranks[static_cast<size_t>(Before(rank_, distance))];
  };
  TreeMessage message;
  message.gather = number_;
  message.first = first;
  message.record_bytes = rank_at(first).bytes;
  size_t length = TreeMessage::kHeaderBytes;
  for (int distance = first; distance < end; ++distance) {
    length += TreeMessage::kLengthBytes + static_cast<size_t>(rank_at(distance).bytes);
    if (length > max_message_bytes_) break;
    ++message.count;
    if (rank_at(distance).bytes != message.record_bytes) {
      message.record_bytes = TreeMessage::kEachItsOwn;
    }
  }
  bytes->clear();
  bytes->reserve(std::min(length, max_message_bytes_));
  WriteTreeHeader(message, size_, bytes);
  if (message.record_bytes == TreeMessage::kEachItsOwn) {
    for (int i = 0; i < message.count; ++i) {
      AppendTreeLength(static_cast<size_t>(rank_at(first + i).bytes), bytes);
    }
  }
  for (int i = 0; i < message.count; ++i) {
    const Rank& rank = rank_at(first + i);
    const auto record = now_.bytes.begin() + rank.offset;
    bytes->insert(bytes->end(), record, record + rank.bytes);
  }
  return message.count;
}

absl::StatusOr<bool> TreeGather::Poll(std::vector<std::byte>* all, std::vector<int>* missing) {
  SLUICE_CHECK(under_way_, "no all-gather is under way");
  if (!IsReady()) {
    if (missing != nullptr) *missing = Missing();
    return false;
  }
  if (missing != nullptr) missing->clear();
  under_way_ = false;
  const int own = now_.ranks[static_cast<size_t>(rank_)].bytes;
  for (int rank = 0; rank < size_; ++rank) {
    const int bytes = now_.ranks[static_cast<size_t>(rank)].bytes;
    if (bytes == own) continue;
    return RecordLengthError(rank, static_cast<size_t>(bytes), rank_, static_cast<size_t>(own));
  }
  all->clear();
  all->reserve(now_.bytes.size());
  for (const Rank& rank : now_.ranks) {
    const auto record = now_.bytes.begin() + rank.offset;
    all->insert(all->end(), record, record + rank.bytes);
  }
  return true;
}

}  // namespace sluice
