// The channels of a plan: parties with equal members, and the links between them.
#ifndef SLUICE_SRC_PLAN_CHANNELS_H_
#define SLUICE_SRC_PLAN_CHANNELS_H_

#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/status.h"
#include "plan/party.h"
#include "plan/plan.h"

namespace sluice {

// Links that lead from one rank to another have tags below this.
inline constexpr int kLinkTags = 1 << 10;

// What makes two channels of any plans the same: members, parents, contributions and levels.
std::vector<int64_t> ChannelContent(const Plan& plan, const Channel& channel);

class Channels {
 public:
  // The channel of a party with `rank` in it: one that `plan` has, or another that is added.
  int32_t Add(const Party& party, absl::Span<const int> node_of_rank, int rank, Plan* plan);

  // Once all are there: gives tags to the links. Both ends of a link know the same channels with
  // it, and number them in the order of their members. ResourceExhausted if there are too many.
  absl::Status NumberLinks(Plan* plan) const;

 private:
  std::map<std::vector<int64_t>, int32_t> by_content_;
};

}  // namespace sluice

#endif  // SLUICE_SRC_PLAN_CHANNELS_H_
