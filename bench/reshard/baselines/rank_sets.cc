// Splitting a communicator, once per set.
#include "reshard/baselines/rank_sets.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "reshard/baselines/wire.h"

namespace sluice::bench {

RankSets::~RankSets() {
  for (auto& [set, comm] : made_) {
    if (comm != MPI_COMM_NULL) MPI_Comm_free(&comm);
  }
}

absl::StatusOr<MPI_Comm> RankSets::Get(int root, absl::Span<const int> ranks) {
  std::vector<int> sorted(ranks.begin(), ranks.end());
  std::sort(sorted.begin(), sorted.end());
  auto key = std::make_pair(root, std::move(sorted));
  const auto found = made_.find(key);
  if (found != made_.end()) return found->second;
  if (made_.size() == kMost) {
    return absl::UnimplementedError(
        absl::StrCat("tensors with more than ", kMost, " different sets of ranks"));
  }
  int mine = -1;
  MPI_Comm_rank(comm_, &mine);
  const bool member =
      mine == root || std::binary_search(key.second.begin(), key.second.end(), mine);
  MPI_Comm comm = MPI_COMM_NULL;
  absl::Status status = Wire::FromMpi(
      MPI_Comm_split(comm_, member ? 0 : MPI_UNDEFINED, mine == root ? -1 : mine, &comm),
      "MPI_Comm_split");
  if (!status.ok()) return status;
  made_.emplace(std::move(key), comm);
  return comm;
}

}  // namespace sluice::bench
