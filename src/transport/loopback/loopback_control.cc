// Gathers, posts and transports between ranks of one process.
#include "transport/loopback/loopback_control.h"

#include <algorithm>
#include <utility>

#include "sluice/fabric.h"
#include "transport/op_check.h"

namespace sluice {

void LoopbackControl::Bring(int rank, size_t index, absl::Span<const std::byte> record) {
  const std::lock_guard<std::mutex> lock(mutex_);
  while (first_gather_ + gathers_.size() <= index) {
    gathers_.emplace_back();
    gathers_.back().records.resize(size());
  }
  gathers_[index - first_gather_].records[static_cast<size_t>(rank)].emplace(record.begin(),
                                                                             record.end());
}

bool LoopbackControl::TakeAll(size_t index, std::vector<std::optional<Record>>* records) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Gather& gather = gathers_[index - first_gather_];
  *records = gather.records;
  for (const auto& record : gather.records) {
    if (!record.has_value()) return false;
  }
  ++gather.taken;
  while (!gathers_.empty() && gathers_.front().taken == size()) {
    gathers_.pop_front();
    ++first_gather_;
  }
  return true;
}

absl::Status LoopbackControl::Post(int src, int dst, absl::Span<const std::byte> record) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::deque<Posted>& inbox = inboxes_[static_cast<size_t>(dst)];
  const auto pending = std::count_if(inbox.begin(), inbox.end(),
                                     [src](const Posted& post) { return post.src == src; });
  if (pending >= Fabric::kMaxPostsPending) return PostRefusal(dst, static_cast<int>(pending));
  inbox.push_back({src, Record(record.begin(), record.end())});
  return absl::OkStatus();
}

bool LoopbackControl::TakePost(int rank, int* src, Record* record) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::deque<Posted>& inbox = inboxes_[static_cast<size_t>(rank)];
  if (inbox.empty()) return false;
  *src = inbox.front().src;
  *record = std::move(inbox.front().record);
  inbox.pop_front();
  return true;
}

std::shared_ptr<LoopbackMessages> LoopbackControl::Messages(size_t index) {
  const std::lock_guard<std::mutex> lock(mutex_);
  while (messages_.size() <= index) {
    messages_.push_back(std::make_shared<LoopbackMessages>(static_cast<int>(size()), sends_));
  }
  return messages_[index];
}

}  // namespace sluice
