// Who is in a channel, and who exchanges messages with whom.
#include "plan/channels.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "tensor/check.h"

namespace sluice {
namespace {

int32_t IndexOf(const std::vector<Member>& members, int rank) {
  const auto found = std::find_if(members.begin(), members.end(),
                                  [rank](const Member& member) { return member.rank == rank; });
  return found == members.end() ? -1 : static_cast<int32_t>(found - members.begin());
}

std::vector<Member> MembersOf(const Party& party) {
  std::vector<Member> members;
  Role root = party.levels.empty() ? Role::kSource : Role::kOwner;
  if (party.src_needs) root = root | Role::kDestination;
  members.push_back({party.src, root, -1});
  for (int rank : party.dsts) {
    const int32_t place = static_cast<int32_t>(members.size());
    members.push_back({rank, Role::kDestination, FanoutParent(party.shape, place)});
  }
  for (int rank : party.contributors) {
    if (rank == party.src) continue;
    const int32_t place = IndexOf(members, rank);
    if (place < 0) {
      members.push_back({rank, Role::kContributor, -1});
    } else {
      Member& member = members[static_cast<size_t>(place)];
      member.role = member.role | Role::kContributor;
    }
  }
  return members;
}

std::vector<int64_t> ContentOf(absl::Span<const Member> members,
                               absl::Span<const int32_t> contributions,
                               absl::Span<const Level> levels) {
  std::vector<int64_t> content = {static_cast<int64_t>(members.size())};
  for (const Member& member : members) {
    content.insert(content.end(), {member.rank, static_cast<int64_t>(member.role), member.parent});
  }
  content.insert(content.end(), contributions.begin(), contributions.end());
  for (const Level& level : levels) {
    content.insert(content.end(), {level.size, static_cast<int64_t>(level.op)});
  }
  return content;
}

}  // namespace

std::vector<int64_t> ChannelContent(const Plan& plan, const Channel& channel) {
  const auto part = [](const auto& all, int32_t first, int32_t count) {
    return absl::MakeConstSpan(all).subspan(static_cast<size_t>(first), static_cast<size_t>(count));
  };
  return ContentOf(part(plan.members, channel.first_member, channel.member_count),
                   part(plan.contributions, channel.first_contribution, channel.contribution_count),
                   part(plan.levels, channel.first_level, channel.level_count));
}

int32_t Channels::Add(const Party& party, absl::Span<const int> node_of_rank, int rank,
                      Plan* plan) {
  const std::vector<Member> members = MembersOf(party);
  std::vector<int32_t> contributions;
  if (!party.levels.empty()) {
    for (int of : party.contributors) contributions.push_back(IndexOf(members, of));
  }
  const auto [it, added] = by_content_.try_emplace(ContentOf(members, contributions, party.levels),
                                                   static_cast<int32_t>(plan->channels.size()));
  if (!added) return it->second;

  Channel channel;
  channel.src = party.src;
  channel.dst = party.dst();
  if (members[0].role == Role::kLocal) channel.transport = TransportKind::kLocal;
  channel.first_member = static_cast<int32_t>(plan->members.size());
  channel.member_count = static_cast<int32_t>(members.size());
  channel.self = IndexOf(members, rank);
  const auto node = [node_of_rank](const Member& member) {
    return node_of_rank[static_cast<size_t>(member.rank)];
  };
  channel.one_node = std::all_of(members.begin(), members.end(), [&](const Member& member) {
    return node(member) == node(members[0]);
  });
  SLUICE_CHECK(channel.self >= 0, "a channel of others");
  channel.first_contribution = static_cast<int32_t>(plan->contributions.size());
  channel.contribution_count = static_cast<int32_t>(contributions.size());
  channel.first_level = static_cast<int32_t>(plan->levels.size());
  channel.level_count = static_cast<int32_t>(party.levels.size());
  const Member& self = members[static_cast<size_t>(channel.self)];
  if (self.parent >= 0) channel.parent.peer = members[static_cast<size_t>(self.parent)].rank;
  if (Has(self.role, Role::kContributor)) channel.owner.peer = party.src;
  channel.first_link = static_cast<int32_t>(plan->links.size());
  for (const Member& member : members) {
    if (member.parent != channel.self) continue;
    plan->links.push_back({member.rank, 0});
    ++channel.child_count;
  }
  if (Has(self.role, Role::kOwner)) {
    for (int of : party.contributors) plan->links.push_back({of == rank ? -1 : of, 0});
  }
  plan->members.insert(plan->members.end(), members.begin(), members.end());
  plan->contributions.insert(plan->contributions.end(), contributions.begin(), contributions.end());
  plan->levels.insert(plan->levels.end(), party.levels.begin(), party.levels.end());
  plan->channels.push_back(channel);
  return it->second;
}

absl::Status Channels::NumberLinks(Plan* plan) const {
  absl::flat_hash_map<int, int> sends, receives;  // links to and from a peer so far
  const auto number = [](Link* link, absl::flat_hash_map<int, int>* links) {
    if (link->peer >= 0) link->tag = (*links)[link->peer]++;
    return link->tag < kLinkTags;
  };
  for (const auto& [content, index] : by_content_) {
    Channel& channel = plan->channels[static_cast<size_t>(index)];
    bool fits = number(&channel.parent, &receives) && number(&channel.owner, &sends);
    const bool owner =
        Has(plan->members[static_cast<size_t>(int64_t{channel.first_member} + channel.self)].role,
            Role::kOwner);
    const int32_t links = channel.child_count + (owner ? channel.contribution_count : 0);
    for (int32_t i = 0; i < links; ++i) {
      Link* link = &plan->links[static_cast<size_t>(int64_t{channel.first_link} + i)];
      fits = number(link, i < channel.child_count ? &sends : &receives) && fits;
    }
    if (!fits) {
      return absl::ResourceExhaustedError(
          absl::StrCat("more than ", kLinkTags, " channels lead from one rank to another"));
    }
  }
  return absl::OkStatus();
}

}  // namespace sluice
