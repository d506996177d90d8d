// Compares the plans of all ranks with each other, and two plans field by field.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>

#include "plan/channel_content.h"
#include "plan/checks.h"
#include "plan/wrong.h"

namespace sluice::oracle {
namespace {

// A chunk in terms that all members share.
struct SharedChunk {
  int32_t tensor;
  int64_t begin, end, bucket_offset, contribution_offset;
  std::array<int64_t, kMaxTensorDims> extent;
  friend bool operator==(const SharedChunk&, const SharedChunk&) = default;
};

// A bucket in terms that all members share.
struct SharedBucket {
  int64_t bytes, contribution_bytes;
  ChannelContent channel;
  std::vector<SharedChunk> chunks;
  friend bool operator==(const SharedBucket&, const SharedBucket&) = default;
};

SharedBucket Share(const Plan& plan, const Bucket& bucket) {
  SharedBucket shared = {bucket.bytes,
                         bucket.contribution_bytes,
                         ContentOf(plan, plan.channels.at(static_cast<size_t>(bucket.channel))),
                         {}};
  for (int32_t c = 0; c < bucket.chunk_count; ++c) {
    const Chunk& chunk = plan.chunks.at(static_cast<size_t>(bucket.first_chunk + c));
    shared.chunks.push_back({chunk.tensor, chunk.begin, chunk.end, chunk.bucket_offset,
                             chunk.contribution_offset,
                             plan.regions.at(static_cast<size_t>(chunk.region)).extent});
  }
  return shared;
}

absl::Status CheckBucket(const Plan& plan, const Bucket& bucket, const SharedBucket& shared) {
  if (bucket.bytes <= 0 || shared.chunks.empty()) return Wrong("an empty bucket");
  const ChannelContent& channel = shared.channel;
  if ((bucket.contribution_bytes > 0) != !channel.contributions.empty()) {
    return Wrong(bucket.contribution_bytes, " bytes of each of ", channel.contributions.size(),
                 " contributions");
  }
  const Channel& mine = plan.channels.at(static_cast<size_t>(bucket.channel));
  if (channel.members.at(static_cast<size_t>(mine.self)).role != bucket.role) {
    return Wrong("another role than the channel's");
  }
  const BucketIdFields fields = bucket.id.fields();
  if (fields.run != 0) return Wrong("a planned id has a run");
  // An owner that contributes nothing is known by its first contributor.
  const auto& from = channel.contributions;
  const bool gets = !from.empty() && std::find(from.begin(), from.end(), 0) == from.end();
  const int src = gets ? channel.members.at(static_cast<size_t>(from[0])).rank : mine.src;
  const int dst = gets ? mine.src : mine.dst;
  if (fields.src != static_cast<uint64_t>(src) || fields.dst != static_cast<uint64_t>(dst)) {
    return Wrong("the id names other ends than the channel");
  }
  return absl::OkStatus();
}

auto Fields(const Bucket& b) {
  return std::tuple(b.id.high(), b.id.low(), b.role, b.channel, b.bytes, b.contribution_bytes,
                    b.first_chunk, b.chunk_count);
}

auto Fields(const Chunk& c) {
  return std::tuple(c.tensor, c.region, c.dst_region, c.begin, c.end, c.bucket_offset,
                    c.contribution_offset);
}

auto Fields(const RegionRuns& r) { return std::tuple(r.dims, r.first_run, r.extent); }

auto Fields(const Channel& c) {
  return std::tuple(c.src, c.dst, c.transport, c.first_member, c.member_count, c.self,
                    c.first_contribution, c.contribution_count, c.first_level, c.level_count,
                    c.parent.peer, c.parent.tag, c.owner.peer, c.owner.tag, c.first_link,
                    c.child_count, c.buckets);
}

auto Totals(const Plan& p) {
  return std::tuple(p.sent_bytes, p.received_bytes, p.local_bytes, p.peak_buckets_without_budget,
                    p.peak_bytes_without_budget);
}

template <typename T>
absl::Status CheckList(const char* what, const std::vector<T>& a, const std::vector<T>& b) {
  if (a.size() != b.size()) return Wrong(a.size(), " and ", b.size(), " ", what);
  for (size_t i = 0; i < a.size(); ++i) {
    if (Fields(a[i]) != Fields(b[i])) return Wrong(what, ": number ", i, " differs");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckAgreement(const std::vector<Plan>& plans) {
  std::map<BucketId, SharedBucket> buckets;
  std::map<BucketId, size_t> views;
  for (size_t rank = 0; rank < plans.size(); ++rank) {
    for (size_t b = 0; b < plans[rank].buckets.size(); ++b) {
      const Bucket& bucket = plans[rank].buckets[b];
      if (b > 0 && !(plans[rank].buckets[b - 1].id < bucket.id)) {
        return Wrong("rank ", rank, ": ", bucket.id.ToString(), " does not ascend");
      }
      const SharedBucket shared = Share(plans[rank], bucket);
      if (absl::Status s = CheckBucket(plans[rank], bucket, shared); !s.ok()) {
        return Wrong("rank ", rank, ": ", bucket.id.ToString(), ": ", s.message());
      }
      const auto [it, first] = buckets.emplace(bucket.id, shared);
      if (!first && !(it->second == shared)) {
        return Wrong("members differ on ", bucket.id.ToString());
      }
      ++views[bucket.id];
    }
  }
  for (const auto& [id, bucket] : buckets) {
    if (views[id] != bucket.channel.members.size()) {
      return Wrong(id.ToString(), " is known to ", views[id], " of ",
                   bucket.channel.members.size());
    }
  }
  return absl::OkStatus();
}

absl::Status CheckSame(const Plan& a, const Plan& b) {
  for (const absl::Status& status :
       {CheckList("buckets", a.buckets, b.buckets), CheckList("chunks", a.chunks, b.chunks),
        CheckList("regions", a.regions, b.regions),
        CheckList("channels", a.channels, b.channels)}) {
    if (!status.ok()) return status;
  }
  if (std::tie(a.runs, a.members, a.contributions, a.levels, a.links) !=
      std::tie(b.runs, b.members, b.contributions, b.levels, b.links)) {
    return Wrong("runs, members, contributions, levels or links differ");
  }
  return Totals(a) == Totals(b) ? absl::OkStatus() : Wrong("totals differ");
}

}  // namespace sluice::oracle
