// Chooses the replicas that serve ranks: among ranks that hold the same part of a tensor, who sends
// what to whom. Also chooses who reduces what, among the ranks that hold contributions to a part.
//
// Pure functions of what all ranks know, so that all members of a bucket agree without talking. The
// same rank comes first, then the same node. The rest is spread so that the busiest sender sends as
// little as possible. Needs may be cut between senders.
#ifndef SLUICE_SRC_PLAN_SERVE_H_
#define SLUICE_SRC_PLAN_SERVE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/types/span.h"

namespace sluice {

using RankList = std::vector<int>;

// A region of the part, and all ranks that need all of it.
struct Want {
  absl::Span<const int> ranks;  // outlives what is made of it
  int64_t elements = 0;         // row-major
  int64_t row_elements = 1;     // cuts between senders prefer multiples of this
};

// Ranks of a want that are served alike. A rank that has the data itself is in none.
struct Need {
  int32_t want = 0;
  absl::Span<const int> ranks;
  bool apart = false;   // each of them is served alone; else all are served together
  int32_t stripes = 1;  // served together: how many ranks of a node its bytes come to first
  // For a reduction whose owners are among `ranks`: the replica whose contributions they add up.
  // -1: an owner adds up those of its own replica.
  int32_t replica = -1;
  // Contributions to a reduction are added up on their nodes, as GatherByNode says.
  bool gathers = false;
};

// Elements [begin, end) of a need's region, for its ranks [first_rank, end_rank).
struct Share {
  int32_t need = 0;
  int32_t first_rank = 0;
  int32_t end_rank = 0;
  int64_t begin = 0;
  int64_t end = 0;
  // A need served together may be cut between the ranks that its bytes come to first: rank number
  // `stripe` of a node (docs/architecture.md). If -1, it is not cut.
  int32_t stripe = -1;
};

// Candidates that divide some of the needs between them: they send, or are the owners. Slots, not
// candidates, own shares. Which candidate fills which slot rotates from tensor to tensor, so that
// small needs that are not cut still spread over all candidates.
struct ServeGroup {
  std::vector<int> candidates;       // ranks
  std::vector<Share> shares;         // ascending by need, rank and begin
  std::vector<int32_t> first_share;  // shares of slot q: [first_share[q], first_share[q+1])
  bool rotates = true;

  size_t SlotOf(size_t candidate, int64_t rotation) const;
  size_t CandidateOf(size_t slot, int64_t rotation) const;
};

struct ServeTable {
  ServeTable() = default;
  ServeTable(ServeTable&&) = default;
  ServeTable& operator=(ServeTable&&) = default;
  ServeTable(const ServeTable&) = delete;  // needs point into lists
  ServeTable& operator=(const ServeTable&) = delete;

  // `members`: numbers of the needs that the group's candidates divide between them.
  void AddGroup(ServeGroup group, absl::Span<const int32_t> members);

  std::vector<Need> needs;             // by ascending want
  std::vector<int32_t> group_of_need;  // parallel to needs
  std::vector<ServeGroup> groups;
  std::vector<RankList> lists;  // ranks of needs that are not a stretch of their want's
};

// The most ranks that are served together, where there are several candidates. More are, if in
// smaller blocks a candidate would give more than a rank receives that passes the want on.
inline constexpr size_t kNeedRanksMax = 64;

// `candidates`: the ranks that hold the part, in mesh order. `wants`: in an order all ranks share.
// Ranks of one node that need the same bytes are served together, so that the bytes cross once.
// Ranks of several nodes are served together where there are more nodes than candidates.
// `nodes_meet`: false if no candidate shares a node with a rank that wants. `relay`: false if each
// rank is to be served alone.
ServeTable Serve(absl::Span<const int> candidates, absl::Span<const Want> wants,
                 absl::Span<const int> node_of_rank, bool nodes_meet, bool relay,
                 int64_t element_bytes);

// The ranks that can reduce a part.
struct Reducers {
  absl::Span<const int> holders;  // of contributions: by replica, then in the order of addition
  size_t contributions = 2;       // of a replica
  // The nodes on which ranks that need a part reduce it themselves, if all contributions of a
  // replica are there.
  const absl::flat_hash_set<int>* reducing_nodes = nullptr;
  // Whether contributions that have to cross may be added up on their nodes first.
  bool may_gather = false;
  int64_t contribution_bytes = 1;  // of an element, as it is contributed
  int64_t result_bytes = 1;        // of an element, as it is passed on

  size_t replicas() const { return holders.size() / contributions; }
  absl::Span<const int> ReplicaAt(size_t number) const {
    return holders.subspan(number * contributions, contributions);
  }
};

// The same for a part that has to be reduced first. A share is what one rank, the owner, reduces
// and passes on. Owners of a region are chosen in this order:
// 1. On a reducing node, if no holder needs the region: the node's ranks that need it.
// 2. If contributions may be gathered, and are enough to wait for: the holders where a sum can end
//    with the fewest bytes between nodes. Only the ones that need the region, if there are any.
// 3. Otherwise the holders that need the region, or all holders.
ServeTable ServeReduced(const Reducers& reducers, absl::Span<const Want> wants,
                        absl::Span<const int> node_of_rank);

}  // namespace sluice

#endif  // SLUICE_SRC_PLAN_SERVE_H_
