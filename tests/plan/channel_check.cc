// Looks at every rank's channels, then at all ends of links together.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "plan/channel_content.h"
#include "plan/channels.h"
#include "plan/checks.h"
#include "plan/wrong.h"

namespace sluice::oracle {
namespace {

absl::Status CheckRoles(const ChannelContent& content) {
  std::set<int> ranks;
  for (const Member& member : content.members) {
    if (!ranks.insert(member.rank).second) return Wrong("rank ", member.rank, " is twice in it");
  }
  const bool local = content.transport == TransportKind::kLocal;
  const Member& root = content.members.at(0);
  if (local != (root.role == Role::kLocal) || root.parent != -1) return Wrong("a wrong root");
  if (local) return content.members.size() == 1 ? absl::OkStatus() : Wrong("local and not");
  const bool reduced = Has(root.role, Role::kOwner);
  if (!reduced && root.role != Role::kSource) return Wrong("the root has nothing");
  if (content.members.size() < 2) return Wrong("nobody to exchange with");
  for (size_t m = 1; m < content.members.size(); ++m) {
    const Member& member = content.members[m];
    const bool contributes = Has(member.role, Role::kContributor);
    const bool needs = Has(member.role, Role::kDestination);
    // Who adds for the owner gives it the sum.
    const bool adds = Has(member.role, Role::kOwner);
    const bool other =
        Has(member.role, Role::kSource) || Has(member.role, Role::kLocal) || (adds && !contributes);
    if (other || (!contributes && !needs) || (contributes && !reduced)) {
      return Wrong("rank ", member.rank, " has a wrong role");
    }
    if (needs != (member.parent >= 0)) return Wrong("a parent for nothing, or none");
    const Member& before = content.members[m - 1];
    if (needs && m > 1 && before.parent < 0) return Wrong("destinations after contributors");
  }
  return absl::OkStatus();
}

// Each node but the root's has one member that gets the bytes from another node. This member passes
// them on to the others of its node. Members of the root's node get them from the root.
absl::Status CheckTree(const ChannelContent& content, const std::vector<int>& node_of_rank) {
  const auto node = [&](size_t member) {
    return node_of_rank[static_cast<size_t>(content.members[member].rank)];
  };
  std::map<int, int32_t> heads = {{node(0), 0}};  // by node
  std::vector<int32_t> heads_in_order = {0};
  bool star = true;
  bool chain = true;
  bool tree = true;
  for (size_t m = 1; m < content.members.size(); ++m) {
    const int32_t parent = content.members[m].parent;
    if (parent < 0) break;
    if (parent >= static_cast<int32_t>(m)) return Wrong("a parent after its child");
    const auto [head, first] = heads.try_emplace(node(m), static_cast<int32_t>(m));
    if (!first) {
      if (parent != head->second) return Wrong("a node that gets the bytes twice");
      continue;
    }
    const size_t place = heads_in_order.size();
    star = star && parent == heads_in_order[0];
    chain = chain && parent == heads_in_order[place - 1];
    tree = tree && parent == heads_in_order[(place - 1) / 2];
    heads_in_order.push_back(static_cast<int32_t>(m));
  }
  return star || chain || tree ? absl::OkStatus() : Wrong("neither star nor chain nor tree");
}

// An owner contributes, or is a destination on the node of all contributors.
absl::Status CheckOwner(const ChannelContent& content, const std::vector<int>& node_of_rank) {
  const Member& owner = content.members[0];
  if (!Has(owner.role, Role::kOwner)) return absl::OkStatus();
  const auto& from = content.contributions;
  if (std::find(from.begin(), from.end(), 0) != from.end()) return absl::OkStatus();
  if (!Has(owner.role, Role::kDestination)) return Wrong("an owner that neither has nor needs");
  for (const Member& member : content.members) {
    if (node_of_rank[static_cast<size_t>(member.rank)] !=
        node_of_rank[static_cast<size_t>(owner.rank)]) {
      return Wrong("an owner that only needs, and rank ", member.rank, " on another node");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckContributions(const ChannelContent& content) {
  int64_t expected = content.levels.empty() ? 0 : 1;
  for (const Level& level : content.levels) {
    if (level.size < 2) return Wrong("a level of one");
    expected *= level.size;
  }
  if (static_cast<int64_t>(content.contributions.size()) != expected) {
    return Wrong(content.contributions.size(), " contributions, not ", expected);
  }
  const std::set<int32_t> distinct(content.contributions.begin(), content.contributions.end());
  if (distinct.size() != content.contributions.size()) return Wrong("a contribution counts twice");
  for (size_t m = 0; m < content.members.size(); ++m) {
    const Role role = content.members[m].role;
    if (m == 0) continue;  // CheckOwner's
    const bool contributes = Has(role, Role::kContributor);
    if (contributes != distinct.contains(static_cast<int32_t>(m))) {
      return Wrong("rank ", content.members[m].rank, " contributes, or does not");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckPlan(int rank, const Plan& plan, const std::vector<int>& node_of_rank) {
  std::vector<int64_t> counts(plan.channels.size());
  for (const Bucket& bucket : plan.buckets) ++counts.at(static_cast<size_t>(bucket.channel));
  std::set<std::vector<int64_t>> keys;
  for (size_t c = 0; c < counts.size(); ++c) {
    const Channel& channel = plan.channels[c];
    if (channel.buckets != counts[c] || counts[c] == 0) return Wrong("wrong count of a channel");
    const ChannelContent content = ContentOf(plan, channel);
    if (!keys.insert(content.Key()).second) return Wrong("two channels of equal content");
    if (absl::Status status = CheckTree(content, node_of_rank); !status.ok()) return status;
    if (absl::Status status = CheckOwner(content, node_of_rank); !status.ok()) return status;
    for (const auto check : {CheckRoles, CheckContributions}) {
      if (absl::Status status = check(content); !status.ok()) return status;
    }
    const auto& members = content.members;
    if (members.at(static_cast<size_t>(channel.self)).rank != rank) return Wrong("not itself");
    const bool has_dst = members.size() > 1 && members[1].parent == 0;
    if (channel.src != members[0].rank || channel.dst != members[has_dst ? 1 : 0].rank) {
      return Wrong("channel ", channel.src, " -> ", channel.dst);
    }
  }
  return absl::OkStatus();
}

// All ends of links of all ranks.
class Links {
 public:
  absl::Status Add(int rank, const Plan& plan, const Channel& channel) {
    content_ = ContentOf(plan, channel);
    key_ = content_.Key();
    const Member& self = content_.members[static_cast<size_t>(channel.self)];
    absl::Status parent = AddEnd(channel.parent, self.parent, rank, false, Of::kResult);
    if (!parent.ok()) return parent;
    if (Has(self.role, Role::kContributor) != (channel.owner.peer >= 0)) {
      return Wrong("gives to rank ", channel.owner.peer);
    }
    // Whether each gives to whom it should is Deliver's to find out.
    absl::Status given =
        AddEnd(channel.owner, MemberOf(channel.owner.peer), rank, true, Of::kContribution);
    if (!given.ok()) return given;
    std::vector<std::pair<int32_t, bool>> expected;  // member, and whether this rank sends
    for (size_t m = 0; m < content_.members.size(); ++m) {
      if (content_.members[m].parent == channel.self) expected.emplace_back(m, true);
    }
    if (channel.child_count != static_cast<int32_t>(expected.size())) {
      return Wrong(channel.child_count, " children");
    }
    if (Has(self.role, Role::kOwner) != (channel.added_count > 0)) return Wrong("adds, or not");
    for (int32_t i = 0; i < channel.added_count; ++i) {
      const Link& link =
          plan.links.at(static_cast<size_t>(int64_t{channel.first_link} + channel.child_count + i));
      expected.emplace_back(MemberOf(link.peer), false);
    }
    for (size_t i = 0; i < expected.size(); ++i) {
      const Link& link = plan.links.at(static_cast<size_t>(channel.first_link) + i);
      const bool sends = expected[i].second;
      absl::Status s =
          AddEnd(link, expected[i].first, rank, sends, sends ? Of::kResult : Of::kContribution);
      if (!s.ok()) return s;
    }
    return absl::OkStatus();
  }

  absl::Status CheckEnds() const {
    for (const auto& [edge, ends] : ends_) {
      if (ends != 2) {
        return Wrong("rank ", std::get<0>(edge), " -> ", std::get<1>(edge), " with tag ",
                     std::get<2>(edge), ": ", ends, " ends");
      }
    }
    return absl::OkStatus();
  }

 private:
  enum class Of { kContribution, kResult };  // what passes by a link

  int32_t MemberOf(int rank) const {
    for (size_t m = 0; m < content_.members.size(); ++m) {
      if (content_.members[m].rank == rank) return static_cast<int32_t>(m);
    }
    return -1;
  }

  // `member`: the other end's number, -1 for none.
  absl::Status AddEnd(const Link& link, int32_t member, int rank, bool sends, Of of) {
    const int peer = member < 0 ? -1 : content_.members[static_cast<size_t>(member)].rank;
    if (link.peer != peer) return Wrong("a link with ", link.peer, ", not ", peer);
    if (peer < 0) return absl::OkStatus();
    if (link.tag < 0 || link.tag >= kLinkTags) return Wrong("tag ", link.tag);
    const Edge edge = {sends ? rank : peer, sends ? peer : rank, link.tag};
    const auto [it, added] = use_of_.try_emplace(edge, key_, of);
    if (!added && it->second != std::pair(key_, of)) return Wrong("two uses of tag ", link.tag);
    ++ends_[edge];
    return absl::OkStatus();
  }

  using Edge = std::tuple<int, int, int>;                       // from, to, tag
  std::map<Edge, std::pair<std::vector<int64_t>, Of>> use_of_;  // in which channel, for what
  std::map<Edge, int> ends_;
  ChannelContent content_;  // of the channel that is being added
  std::vector<int64_t> key_;
};

}  // namespace

absl::Status CheckChannels(const Job& job, const std::vector<Plan>& plans) {
  Links links;
  for (size_t r = 0; r < plans.size(); ++r) {
    const int rank = static_cast<int>(r);
    absl::Status status = CheckPlan(rank, plans[r], job.node_of_rank);
    for (size_t c = 0; status.ok() && c < plans[r].channels.size(); ++c) {
      status = links.Add(rank, plans[r], plans[r].channels[c]);
    }
    if (!status.ok()) return Wrong("rank ", rank, ": ", status.message());
  }
  return links.CheckEnds();
}

}  // namespace sluice::oracle
