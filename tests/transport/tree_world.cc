// The ranks of a job of TreeGathers, messages between them in memory, and a clock.
#include "transport/tree_world.h"

#include <algorithm>
#include <utility>

namespace sluice {

TreeWorld::TreeWorld(int size, const Options& options)
    : options_(options),
      random_(options.seed),
      inboxes_(static_cast<size_t>(size)),
      all_(static_cast<size_t>(size)),
      missing_(static_cast<size_t>(size)),
      sent_(static_cast<size_t>(size)),
      needed_(static_cast<size_t>(size)),
      owed_(static_cast<size_t>(size)) {
  for (int rank = 0; rank < size; ++rank) {
    ranks_.push_back(std::make_unique<TreeGather>(rank, size, options.max_message_bytes));
  }
}

void TreeWorld::Start(int rank, const std::vector<std::byte>& record) {
  tree(rank).Start(record, now_ns);
}

absl::Status TreeWorld::TakeOne(int rank) {
  std::deque<Message>& inbox = inboxes_[static_cast<size_t>(rank)];
  const size_t any = std::uniform_int_distribution<size_t>(0, inbox.size() - 1)(random_);
  const auto first =
      std::find_if(inbox.begin(), inbox.end(),
                   [src = inbox[any].src](const Message& message) { return message.src == src; });
  const Message message = std::move(*first);
  inbox.erase(first);
  if (message.is_needed) --owed_[static_cast<size_t>(message.src)];
  moved_ = true;
  return tree(rank).Take(message.src, message.bytes);
}

std::vector<int> TreeWorld::Takers(int src) const {
  std::vector<int> takers;
  for (int dst = 0; dst < size(); ++dst) {
    const std::deque<Message>& inbox = inboxes_[static_cast<size_t>(dst)];
    const bool owes = std::any_of(inbox.begin(), inbox.end(), [src](const Message& message) {
      return message.src == src && message.is_needed;
    });
    if (owes) takers.push_back(dst);
  }
  return takers;
}

absl::StatusOr<bool> TreeWorld::Poll(int rank, int limit) {
  TreeGather& tree = this->tree(rank);
  std::deque<Message>& inbox = inboxes_[static_cast<size_t>(rank)];
  for (int i = 0; i < limit && !inbox.empty(); ++i) {
    if (absl::Status status = TakeOne(rank); !status.ok()) return status;
  }
  const auto busy = [&](int dst) {
    const std::deque<Message>& other = inboxes_[static_cast<size_t>(dst)];
    return options_.one_each &&
           std::any_of(other.begin(), other.end(), [&](const Message& m) { return m.src == rank; });
  };
  TreeGather::Outgoing out;
  while (tree.Next(now_ns, busy, &out)) {
    moved_ = true;
    longest_message_ = std::max(longest_message_, out.bytes.size());
    ++sent_[static_cast<size_t>(rank)];
    if (out.is_needed) ++needed_[static_cast<size_t>(rank)];
    if (out.is_needed) ++owed_[static_cast<size_t>(rank)];
    inboxes_[static_cast<size_t>(out.dst)].push_back({rank, out.is_needed, std::move(out.bytes)});
  }
  if (!tree.is_under_way()) return false;
  if (tree.IsReady() && owed_[static_cast<size_t>(rank)] > 0) {
    missing_[static_cast<size_t>(rank)] = Takers(rank);
    return false;
  }
  const auto complete =
      tree.Poll(&all_[static_cast<size_t>(rank)], &missing_[static_cast<size_t>(rank)]);
  moved_ = moved_ || !complete.ok() || *complete;
  return complete;
}

absl::Status TreeWorld::Settle(const std::vector<int>& ranks) {
  absl::Status first_error;
  do {
    moved_ = false;
    for (const int rank : ranks) first_error.Update(Poll(rank).status());
  } while (moved_);
  return first_error;
}

std::vector<std::byte> TreeRecord(int rank, int gather, size_t bytes) {
  std::vector<std::byte> record(bytes);
  for (size_t i = 0; i < bytes; ++i) {
    record[i] = static_cast<std::byte>(static_cast<size_t>(rank * 31 + gather * 7 + 1) + i);
  }
  return record;
}

std::vector<std::byte> TreeRecords(int size, int gather, size_t bytes) {
  std::vector<std::byte> records;
  for (int rank = 0; rank < size; ++rank) {
    const std::vector<std::byte> record = TreeRecord(rank, gather, bytes);
    records.insert(records.end(), record.begin(), record.end());
  }
  return records;
}

std::vector<int> RanksBut(int size, const std::vector<int>& out) {
  std::vector<int> ranks;
  for (int rank = 0; rank < size; ++rank) {
    if (std::find(out.begin(), out.end(), rank) == out.end()) ranks.push_back(rank);
  }
  return ranks;
}

}  // namespace sluice
