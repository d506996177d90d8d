// Finds who is in a channel, and who exchanges messages with whom.
#include "plan/channels.h"

#include <algorithm>
#include <cstddef>
#include <tuple>

#include "absl/container/flat_hash_map.h"
#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "tensor/check.h"

namespace sluice {
namespace {

template <typename T>
absl::Span<const T> Part(const std::vector<T>& all, int32_t first, int32_t count) {
  return absl::MakeConstSpan(all).subspan(static_cast<size_t>(first), static_cast<size_t>(count));
}

absl::Span<const Member> MembersOf(const Plan& plan, const Channel& channel) {
  return Part(plan.members, channel.first_member, channel.member_count);
}

absl::Span<const int32_t> ContributionsOf(const Plan& plan, const Channel& channel) {
  return Part(plan.contributions, channel.first_contribution, channel.contribution_count);
}

absl::Span<const Level> LevelsOf(const Plan& plan, const Channel& channel) {
  return Part(plan.levels, channel.first_level, channel.level_count);
}

// Compares channels of one plan: equal content makes them the same. Points into the plan.
auto ContentOf(const Plan& plan, const Channel& channel) {
  return std::tuple(channel.member_count, MembersOf(plan, channel), ContributionsOf(plan, channel),
                    LevelsOf(plan, channel));
}

auto ContentOf(const Plan& plan, int32_t channel) {
  return ContentOf(plan, plan.channels[static_cast<size_t>(channel)]);
}

int32_t IndexOf(absl::Span<const Member> members, int rank) {
  const auto found = std::find_if(members.begin(), members.end(),
                                  [rank](const Member& member) { return member.rank == rank; });
  return found == members.end() ? -1 : static_cast<int32_t>(found - members.begin());
}

}  // namespace

std::vector<int64_t> ChannelContent(const Plan& plan, const Channel& channel) {
  std::vector<int64_t> content = {channel.member_count};
  for (const Member& member : MembersOf(plan, channel)) {
    content.insert(content.end(), {member.rank, static_cast<int64_t>(member.role), member.parent});
  }
  const absl::Span<const int32_t> contributions = ContributionsOf(plan, channel);
  content.insert(content.end(), contributions.begin(), contributions.end());
  for (const Level& level : LevelsOf(plan, channel)) {
    content.insert(content.end(), {level.size, static_cast<int64_t>(level.op)});
  }
  return content;
}

// A few members tell most channels apart.
size_t Channels::Hash::operator()(int32_t channel) const {
  const absl::Span<const Member> members =
      MembersOf(*plan, plan->channels[static_cast<size_t>(channel)]);
  const Member& last = members.back();
  return absl::HashOf(members.size(), members[0].rank, members[members.size() / 2].rank, last.rank,
                      last.parent);
}

bool Channels::Equal::operator()(int32_t a, int32_t b) const {
  return ContentOf(*plan, a) == ContentOf(*plan, b);
}

Channels::Channels(absl::Span<const int> node_of_rank, int rank, Plan* plan)
    : node_of_rank_(node_of_rank),
      rank_(rank),
      plan_(*plan),
      by_content_(0, Hash{plan}, Equal{plan}) {}

// Whether the channel is a new one shows once its content is in the plan.
int32_t Channels::Add(const Party& party) {
  Channel channel;
  channel.src = party.src;
  channel.dst = party.dst();
  channel.first_member = static_cast<int32_t>(plan_.members.size());
  channel.first_contribution = static_cast<int32_t>(plan_.contributions.size());
  channel.first_level = static_cast<int32_t>(plan_.levels.size());
  AppendContent(party);
  channel.member_count = static_cast<int32_t>(plan_.members.size()) - channel.first_member;
  channel.contribution_count =
      static_cast<int32_t>(plan_.contributions.size()) - channel.first_contribution;
  channel.level_count = static_cast<int32_t>(plan_.levels.size()) - channel.first_level;
  const int32_t index = static_cast<int32_t>(plan_.channels.size());
  plan_.channels.push_back(channel);
  const auto [known, added] = by_content_.insert(index);
  if (added) {
    Connect(party, &plan_.channels.back());
    return index;
  }
  plan_.channels.pop_back();
  plan_.members.resize(static_cast<size_t>(channel.first_member));
  plan_.contributions.resize(static_cast<size_t>(channel.first_contribution));
  plan_.levels.resize(static_cast<size_t>(channel.first_level));
  return *known;
}

void Channels::AppendContent(const Party& party) {
  const size_t first = plan_.members.size();
  const auto members = [&] { return absl::MakeSpan(plan_.members).subspan(first); };
  Role root = party.levels.empty() ? Role::kSource : Role::kOwner;
  if (party.src_needs) root = root | Role::kDestination;
  plan_.members.push_back({party.src, root, -1});
  for (const FanoutPlace& place : party.dsts) {
    plan_.members.push_back({place.rank, Role::kDestination, place.parent});
  }
  for (int rank : party.contributors) {
    if (rank == party.src) continue;
    const int32_t place = IndexOf(members(), rank);
    if (place < 0) {
      plan_.members.push_back({rank, RoleInReduction(party, rank), -1});
    } else {
      Member& member = members()[static_cast<size_t>(place)];
      member.role = member.role | RoleInReduction(party, rank);
    }
  }
  if (party.levels.empty()) return;
  for (int of : party.contributors) plan_.contributions.push_back(IndexOf(members(), of));
  plan_.levels.insert(plan_.levels.end(), party.levels.begin(), party.levels.end());
}

// This rank's place and links in a channel whose content is in the plan.
void Channels::Connect(const Party& party, Channel* channel) {
  const absl::Span<const Member> members = MembersOf(plan_, *channel);
  if (members[0].role == Role::kLocal) channel->transport = TransportKind::kLocal;
  channel->self = IndexOf(members, rank_);
  SLUICE_CHECK(channel->self >= 0, "a channel of others");
  const auto node = [this](const Member& member) {
    return node_of_rank_[static_cast<size_t>(member.rank)];
  };
  channel->one_node = std::all_of(members.begin(), members.end(), [&](const Member& member) {
    return node(member) == node(members[0]);
  });
  const Member& self = members[static_cast<size_t>(channel->self)];
  for (int32_t at = self.parent; at >= 0; at = members[static_cast<size_t>(at)].parent) {
    ++channel->depth;
  }
  if (self.parent >= 0) channel->parent.peer = members[static_cast<size_t>(self.parent)].rank;
  channel->first_link = static_cast<int32_t>(plan_.links.size());
  for (const Member& member : members) {
    if (member.parent != channel->self) continue;
    plan_.links.push_back({member.rank, 0});
    ++channel->child_count;
  }
  if (!party.contributors.empty()) ConnectReduction(party, channel);
}

void Channels::ConnectReduction(const Party& party, Channel* channel) {
  const GatherSteps& steps = party.steps;
  channel->step_count = static_cast<int32_t>(steps.size());
  const auto own = std::find(party.contributors.begin(), party.contributors.end(), rank_);
  size_t step = steps.size() - 1;
  if (own != party.contributors.end()) {
    channel->own_contribution = static_cast<int32_t>(own - party.contributors.begin());
    step = StepOf(steps, channel->own_contribution);
    const bool passes_on = steps[step].adder == rank_;
    if (rank_ != party.src) channel->owner.peer = steps[step + (passes_on ? 1 : 0)].adder;
  }
  channel->step = static_cast<int32_t>(step);
  if (steps[step].adder != rank_) return;
  const size_t first = static_cast<size_t>(steps[step].first);
  const size_t end = step + 1 < steps.size() ? static_cast<size_t>(steps[step + 1].first)
                                             : party.contributors.size();
  channel->first_added = steps[step].first;
  const auto node = [this](int rank) { return node_of_rank_[static_cast<size_t>(rank)]; };
  channel->adds_near = true;
  const auto add = [&](int from) {
    plan_.links.push_back({from == rank_ ? -1 : from, 0});
    ++channel->added_count;
    channel->adds_near = channel->adds_near && node(from) == node(rank_);
  };
  if (step > 0) add(steps[step - 1].adder);
  for (size_t number = first; number < end; ++number) add(party.contributors[number]);
}

// By content. The first few members tell most of them apart.
std::vector<int32_t> Channels::InOrder() const {
  struct Entry {
    std::tuple<int32_t, Member, int> begin;
    int32_t channel;
  };
  std::vector<Entry> entries;
  entries.reserve(plan_.channels.size());
  for (size_t c = 0; c < plan_.channels.size(); ++c) {
    const absl::Span<const Member> members = MembersOf(plan_, plan_.channels[c]);
    const int second = members.size() > 1 ? members[1].rank : -1;
    entries.push_back(
        {{plan_.channels[c].member_count, members[0], second}, static_cast<int32_t>(c)});
  }
  std::sort(entries.begin(), entries.end(), [this](const Entry& a, const Entry& b) {
    if (a.begin != b.begin) return a.begin < b.begin;
    return ContentOf(plan_, a.channel) < ContentOf(plan_, b.channel);
  });
  std::vector<int32_t> in_order;
  in_order.reserve(entries.size());
  for (const Entry& entry : entries) in_order.push_back(entry.channel);
  return in_order;
}

absl::Status Channels::NumberLinks() {
  absl::flat_hash_map<int, int> sends, receives;  // links to and from a peer so far
  const auto number = [](Link* link, absl::flat_hash_map<int, int>* links) {
    if (link->peer >= 0) link->tag = (*links)[link->peer]++;
    return link->tag < kLinkTags;
  };
  for (int32_t index : InOrder()) {
    Channel& channel = plan_.channels[static_cast<size_t>(index)];
    const auto links = absl::MakeSpan(plan_.links)
                           .subspan(static_cast<size_t>(channel.first_link),
                                    static_cast<size_t>(channel.child_count) +
                                        static_cast<size_t>(channel.added_count));
    const size_t children = static_cast<size_t>(channel.child_count);
    // A rank may give another its contribution, and the result too.
    bool fits = number(&channel.owner, &sends);
    for (Link& link : links.subspan(children)) fits = number(&link, &receives) && fits;
    fits = number(&channel.parent, &receives) && fits;
    for (Link& link : links.first(children)) fits = number(&link, &sends) && fits;
    if (!fits) {
      return absl::ResourceExhaustedError(
          absl::StrCat("more than ", kLinkTags, " channels lead from one rank to another"));
    }
  }
  return absl::OkStatus();
}

}  // namespace sluice
