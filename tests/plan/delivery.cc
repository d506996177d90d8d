// Takes each bucket from its source, or the contributors, down the tree to its destinations.
#include <cstddef>
#include <map>

#include "plan/checks.h"
#include "plan/job_tensors.h"
#include "plan/wrong.h"

namespace sluice::oracle {
namespace {

class Courier {
 public:
  Courier(const Job& job, const std::vector<Plan>& plans)
      : plans_(plans), tensors_(job, plans), moved_(plans.size()) {}

  absl::Status Run();
  const std::vector<Moved>& moved() const { return moved_; }

 private:
  using Views = std::map<int, const Bucket*>;  // of one bucket, by rank

  // A bucket and its members, in the words of its root.
  struct Party {
    const Views& views;
    const Plan& plan;
    const Channel& channel;

    const Member& member(int32_t i) const {
      return plan.members.at(static_cast<size_t>(int64_t{channel.first_member} + i));
    }
  };

  absl::Status Carry(const Views& views);
  absl::Status FillRoot(const Party& party, Wire* wire);
  absl::Status Gather(const Party& party, Wire* wire);
  absl::Status Order(const Party& party, int32_t adder, std::vector<int32_t>* numbers) const;
  absl::Status Spread(const Party& party, const Wire& wire);
  Moved& Of(int rank) { return moved_[static_cast<size_t>(rank)]; }

  const std::vector<Plan>& plans_;
  JobTensors tensors_;
  std::vector<Moved> moved_;
};

absl::Status Courier::Run() {
  std::map<BucketId, Views> buckets;
  for (size_t rank = 0; rank < plans_.size(); ++rank) {
    for (const Bucket& bucket : plans_[rank].buckets) {
      if (!buckets[bucket.id].emplace(static_cast<int>(rank), &bucket).second) {
        return Wrong(bucket.id.ToString(), " is twice in the plan of rank ", rank);
      }
    }
  }
  for (const auto& [id, views] : buckets) {
    const absl::Status status = Carry(views);
    if (!status.ok()) return Wrong(id.ToString(), ": ", status.message());
  }
  return tensors_.CheckAllArrived();
}

absl::Status Courier::Carry(const Views& views) {
  const auto& [some_rank, some_view] = *views.begin();
  const Plan& plan = plans_[static_cast<size_t>(some_rank)];
  const Party party = {views, plan, plan.channels.at(static_cast<size_t>(some_view->channel))};
  for (int32_t m = 0; m < party.channel.member_count; ++m) {
    const auto view = views.find(party.member(m).rank);
    if (view == views.end() || view->second->role != party.member(m).role) {
      return Wrong("rank ", party.member(m).rank, " does not know its part");
    }
  }
  if (views.size() != static_cast<size_t>(party.channel.member_count)) {
    return Wrong(views.size(), " ranks think that they are members");
  }
  const Member& root = party.member(0);
  if (root.role == Role::kLocal) {
    Of(root.rank).local +=
        tensors_.PayloadBytes(root.rank, *views.at(root.rank), JobTensors::As::kDst);
    return tensors_.CopyLocal(root.rank, *views.at(root.rank));
  }
  Wire wire;
  if (absl::Status status = FillRoot(party, &wire); !status.ok()) return status;
  return Spread(party, wire);
}

absl::Status Courier::FillRoot(const Party& party, Wire* wire) {
  const Member& root = party.member(0);
  const Bucket& bucket = *party.views.at(root.rank);
  if (Has(root.role, Role::kOwner)) return Gather(party, wire);
  if (root.role != Role::kSource) return Wrong("the root has nothing to give");
  return tensors_.Pack(root.rank, bucket, wire);
}

absl::Status Courier::Gather(const Party& party, Wire* wire) {
  const int owner = party.member(0).rank;
  std::vector<Wire> contributions;
  for (int32_t c = 0; c < party.channel.contribution_count; ++c) {
    const int32_t index = party.plan.contributions.at(
        static_cast<size_t>(int64_t{party.channel.first_contribution} + c));
    const Member& member = party.member(index);
    const Bucket& bucket = *party.views.at(member.rank);
    absl::Status status =
        tensors_.PackContribution(member.rank, bucket, &contributions.emplace_back());
    if (!status.ok()) return status;
    if (contributions.back().size() != contributions.front().size()) {
      return Wrong("contributions of unequal size");
    }
    if (index == 0) continue;
    if (!Has(member.role, Role::kContributor)) return Wrong("rank ", member.rank, " gives nothing");
    const int64_t bytes = tensors_.PayloadBytes(member.rank, bucket, JobTensors::As::kSrc);
    Of(member.rank).sent += bytes;
    Of(owner).contributed += bytes;
  }
  std::vector<int32_t> order;
  if (absl::Status status = Order(party, 0, &order); !status.ok()) return status;
  for (size_t i = 0; i < order.size(); ++i) {
    if (order[i] != static_cast<int32_t>(i)) return Wrong("contributions out of order");
  }
  if (order.size() != contributions.size()) return Wrong(order.size(), " contributions are added");
  const auto levels = absl::MakeConstSpan(party.plan.levels)
                          .subspan(static_cast<size_t>(party.channel.first_level),
                                   static_cast<size_t>(party.channel.level_count));
  return tensors_.Reduce(owner, *party.views.at(owner), levels, contributions, wire);
}

// The numbers of the contributions in what `adder`, a member, adds up, in its order: its links lead
// to whoever gives a contribution, or the sum of some, to it.
absl::Status Courier::Order(const Party& party, int32_t adder,
                            std::vector<int32_t>* numbers) const {
  const auto channel_of = [&](const Member& member) -> const Channel& {
    const Plan& plan = plans_[static_cast<size_t>(member.rank)];
    return plan.channels.at(static_cast<size_t>(party.views.at(member.rank)->channel));
  };
  const auto number_of = [&](int32_t m) {
    int32_t c = 0;
    while (party.plan.contributions.at(
               static_cast<size_t>(int64_t{party.channel.first_contribution} + c)) != m) {
      ++c;
    }
    return c;
  };
  const Member& self = party.member(adder);
  const Channel& channel = channel_of(self);
  const Plan& plan = plans_[static_cast<size_t>(self.rank)];
  for (int32_t i = 0; i < channel.added_count; ++i) {
    const Link& link =
        plan.links.at(static_cast<size_t>(channel.first_link + channel.child_count + i));
    if (link.peer < 0) {
      numbers->push_back(number_of(adder));
      continue;
    }
    int32_t from = 0;
    while (from < party.channel.member_count && party.member(from).rank != link.peer) ++from;
    if (from == party.channel.member_count) return Wrong("rank ", link.peer, " is no member");
    if (channel_of(party.member(from)).owner.peer != self.rank) {
      return Wrong("rank ", link.peer, " gives to another one than rank ", self.rank);
    }
    if (!Has(party.member(from).role, Role::kOwner)) {
      numbers->push_back(number_of(from));
    } else if (absl::Status status = Order(party, from, numbers); !status.ok()) {
      return status;
    }
  }
  return absl::OkStatus();
}

absl::Status Courier::Spread(const Party& party, const Wire& wire) {
  const int root = party.member(0).rank;
  std::vector<bool> has(static_cast<size_t>(party.channel.member_count));
  has[0] = true;
  for (int32_t m = 0; m < party.channel.member_count; ++m) {
    const Member& member = party.member(m);
    const Bucket& bucket = *party.views.at(member.rank);
    if (member.parent >= 0) {
      if (member.parent >= m || !has[static_cast<size_t>(member.parent)]) {
        return Wrong("rank ", member.rank, " waits for one that has nothing");
      }
      has[static_cast<size_t>(m)] = true;
      Of(party.member(member.parent).rank).sent +=
          tensors_.PayloadBytes(member.rank, bucket, JobTensors::As::kWire);
    }
    if (!Has(member.role, Role::kDestination)) continue;
    if (!has[static_cast<size_t>(m)]) return Wrong("rank ", member.rank, " gets nothing");
    absl::Status status = tensors_.Unpack(member.rank, root, bucket, wire);
    if (!status.ok()) return status;
    Of(member.rank).received += tensors_.PayloadBytes(member.rank, bucket, JobTensors::As::kDst);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Deliver(const Job& job, const std::vector<Plan>& plans, std::vector<Moved>* moved) {
  Courier courier(job, plans);
  absl::Status status = courier.Run();
  *moved = courier.moved();
  return status;
}

}  // namespace sluice::oracle
