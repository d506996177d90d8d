// Processes that have ended, but for those that said so before.
#include "world/rank_ends.h"

#include "tensor/error_text.h"
#include "transport/tree_gather.h"

namespace sluice {
namespace {

// One digit, zeros behind it: a step of TreeGather.
bool IsStep(int distance) {
  while (distance > 0 && distance % TreeGather::kRadix == 0) distance /= TreeGather::kRadix;
  return distance > 0 && distance < TreeGather::kRadix;
}

// The nodes, but for ranks that are not looked at: these have one of their own.
std::vector<int> NodesOfConnected(int rank, absl::Span<const int> nodes) {
  std::vector<int> result(nodes.begin(), nodes.end());
  const int size = static_cast<int>(nodes.size());
  for (int other = 0; other < size; ++other) {
    if (other != rank && !IsOneMessageAway(rank, other, size)) {
      result[static_cast<size_t>(other)] = -1;
    }
  }
  return result;
}

}  // namespace

bool IsOneMessageAway(int a, int b, int size) {
  return IsStep((b - a + size) % size) || IsStep((a - b + size) % size);
}

RankEnds::RankEnds(std::shared_ptr<TcpLinks> links, std::vector<ProcessName> names,
                   absl::Span<const int> nodes)
    : links_(std::move(links)),
      names_(std::move(names)),
      processes_(links_->rank(), names_, NodesOfConnected(links_->rank(), nodes)) {
  for (int rank = 0; rank < links_->size(); ++rank) {
    if (processes_.Sees(rank)) looked_at_.push_back(rank);
  }
}

absl::Status RankEnds::Check() {
  if (processes_.Check().ok()) return absl::OkStatus();
  ErrorText text;
  for (const int rank : looked_at_) {
    if (!processes_.HasEnded(rank) || links_->HasLeft(rank)) continue;
    RankProcesses::AddEnd(rank, names_[static_cast<size_t>(rank)].pid, &text);
  }
  return text.empty() ? absl::OkStatus() : text.ToStatus(absl::StatusCode::kUnavailable);
}

}  // namespace sluice
