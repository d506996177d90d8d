// Which replica serves whom: of the ranks that hold the same part of a tensor, who sends what.
//
// A pure function of what all ranks know, so that both ends of a route agree without talking:
// same rank first, then same node, then spread so that the busiest sender sends as little as
// possible. Needs may be cut between senders.
#ifndef SLUICE_SRC_PLAN_SERVE_H_
#define SLUICE_SRC_PLAN_SERVE_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace sluice {

// A rank that needs a region of the part, all of it.
struct Need {
  int rank = -1;
  int64_t elements = 0;      // of the region, row-major
  int64_t row_elements = 1;  // cuts between senders prefer multiples of this
};

// Elements [begin, end) of a need's region.
struct Share {
  int32_t need = 0;
  int64_t begin = 0;
  int64_t end = 0;
};

// Candidates that divide some of the needs between them. Slots, not candidates, own shares: which
// candidate fills which slot rotates from tensor to tensor, so that small needs that are not cut
// still spread over all candidates.
struct ServeGroup {
  std::vector<int> candidates;       // ranks
  std::vector<Share> shares;         // ascending by need, then begin
  std::vector<int32_t> first_share;  // shares of slot q: [first_share[q], first_share[q+1])
  bool rotates = true;

  size_t SlotOf(size_t candidate, int64_t rotation) const;
  size_t CandidateOf(size_t slot, int64_t rotation) const;
};

struct ServeTable {
  static constexpr int32_t kLocal = -1;

  std::vector<int32_t> group_of_need;  // kLocal: the rank has the data itself
  std::vector<ServeGroup> groups;
};

// `candidates`: the ranks that hold the part, in mesh order. `needs`: in an order all ranks share.
ServeTable Serve(absl::Span<const int> candidates, absl::Span<const Need> needs,
                 absl::Span<const int> node_of_rank, int64_t element_bytes);

}  // namespace sluice

#endif  // SLUICE_SRC_PLAN_SERVE_H_
