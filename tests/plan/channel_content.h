// What a channel is, in terms that all its members share.
#ifndef SLUICE_TESTS_PLAN_CHANNEL_CONTENT_H_
#define SLUICE_TESTS_PLAN_CHANNEL_CONTENT_H_

#include <cstdint>
#include <tuple>
#include <vector>

#include "plan/plan.h"

namespace sluice::oracle {

struct ChannelContent {
  std::vector<Member> members;
  std::vector<int32_t> contributions;
  std::vector<Level> levels;
  TransportKind transport = TransportKind::kMessage;

  friend bool operator==(const ChannelContent&, const ChannelContent&) = default;

  // For ordered containers.
  std::vector<int64_t> Key() const {
    std::vector<int64_t> key = {static_cast<int64_t>(transport),
                                static_cast<int64_t>(members.size()),
                                static_cast<int64_t>(levels.size())};
    for (const Member& member : members) {
      key.insert(key.end(), {member.rank, static_cast<int64_t>(member.role), member.parent});
    }
    for (const Level& level : levels) {
      key.insert(key.end(), {level.size, static_cast<int64_t>(level.op)});
    }
    key.insert(key.end(), contributions.begin(), contributions.end());
    return key;
  }
};

inline ChannelContent ContentOf(const Plan& plan, const Channel& channel) {
  const auto part = [](const auto& all, int32_t first, int32_t count) {
    return std::vector(all.begin() + first, all.begin() + first + count);
  };
  return {part(plan.members, channel.first_member, channel.member_count),
          part(plan.contributions, channel.first_contribution, channel.contribution_count),
          part(plan.levels, channel.first_level, channel.level_count), channel.transport};
}

}  // namespace sluice::oracle

#endif  // SLUICE_TESTS_PLAN_CHANNEL_CONTENT_H_
