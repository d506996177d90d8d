// Which members share a node: those that really reach each other's shared memory.
//
// Names of hosts say too little: two hosts may have one name, and two containers of one host may
// have two. So may ids: machines that were restored from one image of memory have one boot id. So
// members try. Each shares a page with a random word in it. The others look for the page by the
// number of its maker's process, as `direct` does, and read the word.
#ifndef SLUICE_SRC_WORLD_REACH_H_
#define SLUICE_SRC_WORLD_REACH_H_

#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

#include "absl/types/span.h"
#include "transport/direct/shared_segment.h"
#include "transport/process_name.h"

namespace sluice {

// The targets that others try to reach. Travels as its bytes.
struct ReachCard {
  ProcessName process;
  SharedSegmentName page;  // pid -1: there is none, so nobody shares a node with this member
  uint64_t word = 0;
};
static_assert(std::is_trivially_copyable_v<ReachCard>);

// This member's page, as long as it lives.
class ReachPage {
 public:
  // A process that cannot share memory has a page that nobody reaches.
  static ReachPage Make();

  const ReachCard& card() const { return card_; }

 private:
  std::shared_ptr<SharedSegment> page_;
  ReachCard card_;
};

// The ranks that `rank` reaches, itself among them, as one number: equal numbers are equal sets.
uint64_t ReachOf(int rank, absl::Span<const ReachCard> cards);

// The node of each rank, from the number of each. Ranks of one node reach the same ranks, each
// other among them. So a rank that only some of a node reach is a node of its own.
std::vector<int> NodesByReach(absl::Span<const uint64_t> reach);

}  // namespace sluice

#endif  // SLUICE_SRC_WORLD_REACH_H_
