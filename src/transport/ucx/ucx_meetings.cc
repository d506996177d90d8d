// Lines of messages, or of receives, between a rank and this one.
#include "transport/ucx/ucx_meetings.h"

namespace sluice {

UcxMeetings::Node UcxMeetings::TakeFirst(absl::flat_hash_map<uint64_t, Line>::iterator line) {
  const int index = line->second.first;
  Node& node = nodes_[static_cast<size_t>(index)];
  const Node taken = node;
  line->second.first = node.next;
  if (node.next < 0) lines_.erase(line);
  node.next = unused_;
  unused_ = index;
  if (taken.slot < 0) --announced_[static_cast<size_t>(taken.message.src)];
  return taken;
}

void UcxMeetings::Append(uint64_t line, const Node& node) {
  int index = unused_;
  if (index < 0) {
    index = static_cast<int>(nodes_.size());
    nodes_.push_back(node);
  } else {
    unused_ = nodes_[static_cast<size_t>(index)].next;
    nodes_[static_cast<size_t>(index)] = node;
  }
  Line& at = lines_[line];
  if (at.first < 0) {
    at.first = index;
  } else {
    nodes_[static_cast<size_t>(at.last)].next = index;
  }
  at.last = index;
}

bool UcxMeetings::Receive(int src, int tag, int slot, Announced* message) {
  const auto line = lines_.find(LineOf(src, tag));
  if (line == lines_.end() || nodes_[static_cast<size_t>(line->second.first)].slot >= 0) {
    Append(LineOf(src, tag), {{src, tag, 0, 0}, slot, -1});
    return false;
  }
  *message = TakeFirst(line).message;
  return true;
}

int UcxMeetings::Announce(const Announced& message) {
  const auto line = lines_.find(LineOf(message.src, message.tag));
  if (line != lines_.end() && nodes_[static_cast<size_t>(line->second.first)].slot >= 0) {
    return TakeFirst(line).slot;
  }
  int& announced = announced_[static_cast<size_t>(message.src)];
  if (announced == kMaxAnnounced) return kRefused;
  ++announced;
  Append(LineOf(message.src, message.tag), {message, -1, -1});
  return kWaits;
}

void UcxMeetings::TakeReceives(int src, std::vector<int>* slots) {
  std::vector<uint64_t> lines;
  for (const auto& [key, line] : lines_) {
    const bool receives = nodes_[static_cast<size_t>(line.first)].slot >= 0;
    if (receives && (src == kAllRanks || RankOf(key) == src)) lines.push_back(key);
  }
  for (const uint64_t key : lines) {
    for (auto line = lines_.find(key); line != lines_.end(); line = lines_.find(key)) {
      slots->push_back(TakeFirst(line).slot);
    }
  }
}

void UcxMeetings::ForgetAnnounced(int src) {
  std::vector<uint64_t> lines;
  for (const auto& [key, line] : lines_) {
    if (RankOf(key) == src && nodes_[static_cast<size_t>(line.first)].slot < 0) {
      lines.push_back(key);
    }
  }
  for (const uint64_t key : lines) {
    for (auto line = lines_.find(key); line != lines_.end(); line = lines_.find(key)) {
      TakeFirst(line);
    }
  }
}

}  // namespace sluice
