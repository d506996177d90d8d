// The channels of a plan: parties with equal members, and the links between them.
#ifndef SLUICE_SRC_PLAN_CHANNELS_H_
#define SLUICE_SRC_PLAN_CHANNELS_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "plan/party.h"
#include "plan/plan.h"

namespace sluice {

// Links that lead from one rank to another have tags below this.
inline constexpr int kLinkTags = 1 << 10;

// Equal for the same channels of any plans: members, parents, contributions and levels.
std::vector<int64_t> ChannelContent(const Plan& plan, const Channel& channel);

// The channels of one rank's plan, as they are added to it.
class Channels {
 public:
  // Both must outlive this object.
  Channels(absl::Span<const int> node_of_rank, int rank, Plan* plan);

  // The channel of a party with this rank in it. Adds a channel if the plan has none for it.
  int32_t Add(const Party& party);

  // Once all are there: gives tags to the links. Both ends of a link know the same channels with
  // it, and number them in the order of their members. ResourceExhausted if there are too many.
  absl::Status NumberLinks();

 private:
  // By content, which lies in the plan.
  struct Hash {
    const Plan* plan;
    size_t operator()(int32_t channel) const;
  };
  struct Equal {
    const Plan* plan;
    bool operator()(int32_t a, int32_t b) const;
  };

  void AppendContent(const Party& party);
  void Connect(const Party& party, Channel* channel);
  void ConnectReduction(const Party& party, Channel* channel);
  std::vector<int32_t> InOrder() const;

  const absl::Span<const int> node_of_rank_;
  const int rank_;
  Plan& plan_;
  absl::flat_hash_set<int32_t, Hash, Equal> by_content_;
};

}  // namespace sluice

#endif  // SLUICE_SRC_PLAN_CHANNELS_H_
