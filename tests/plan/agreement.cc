// Compares the plans of all ranks with each other.
#include "plan/agreement.h"

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>

#include "absl/strings/str_cat.h"

namespace sluice::oracle {
namespace {

template <typename... Parts>
absl::Status Wrong(const Parts&... parts) {
  return absl::InternalError(absl::StrCat(parts...));
}

// A chunk in terms that both ends share.
struct SharedChunk {
  int32_t tensor;
  int64_t begin, end, bucket_offset;
  std::array<int64_t, kMaxTensorDims> extent;
  friend bool operator==(const SharedChunk&, const SharedChunk&) = default;
};

// A bucket in terms that all members share.
struct SharedBucket {
  int64_t bytes;
  std::vector<Member> members;
  int src, dst, tag;
  TransportKind transport;
  std::vector<SharedChunk> chunks;
  friend bool operator==(const SharedBucket&, const SharedBucket&) = default;
};

SharedBucket Share(const Plan& plan, const Bucket& bucket) {
  const Channel& channel = plan.channels.at(static_cast<size_t>(bucket.channel));
  SharedBucket shared = {bucket.bytes,      {}, channel.src, channel.dst, channel.tag,
                         channel.transport, {}};
  for (int32_t m = 0; m < bucket.member_count; ++m) {
    shared.members.push_back(plan.members.at(static_cast<size_t>(bucket.first_member + m)));
  }
  for (int32_t c = 0; c < bucket.chunk_count; ++c) {
    const Chunk& chunk = plan.chunks.at(static_cast<size_t>(bucket.first_chunk + c));
    shared.chunks.push_back({chunk.tensor, chunk.begin, chunk.end, chunk.bucket_offset,
                             plan.regions.at(static_cast<size_t>(chunk.region)).extent});
  }
  return shared;
}

absl::Status CheckBucket(int rank, const Bucket& bucket, const SharedBucket& shared) {
  if (bucket.bytes <= 0 || shared.chunks.empty()) return Wrong("an empty bucket");
  const bool local = shared.transport == TransportKind::kLocal;
  std::vector<Member> expected = {{shared.src, Role::kSource}, {shared.dst, Role::kDestination}};
  if (local) expected = {{shared.src, Role::kLocal}};
  if (local != (shared.src == shared.dst)) return Wrong("wrong transport");
  if (shared.members != expected) return Wrong("wrong members");
  bool is_member = false;
  for (const Member& member : shared.members) {
    is_member = is_member || member == Member{rank, bucket.role};
  }
  if (!is_member) return Wrong("rank ", rank, " is not a member with its role");
  const BucketIdFields fields = bucket.id.fields();
  if (fields.run != 0) return Wrong("a planned id has a run");
  if (fields.src != static_cast<uint64_t>(shared.src) ||
      fields.dst != static_cast<uint64_t>(shared.dst)) {
    return Wrong("the id names other ends than the channel");
  }
  return absl::OkStatus();
}

// The channels must be distinct, used, and count their buckets.
absl::Status CheckChannels(const Plan& plan) {
  std::vector<int64_t> counts(plan.channels.size());
  for (const Bucket& bucket : plan.buckets) {
    if (bucket.channel < 0 || bucket.channel >= static_cast<int32_t>(counts.size())) {
      return Wrong(bucket.id.ToString(), " has no channel");
    }
    ++counts[static_cast<size_t>(bucket.channel)];
  }
  std::set<std::tuple<int, int, TransportKind>> keys;
  std::set<std::tuple<int, int, int>> tags;
  for (size_t c = 0; c < counts.size(); ++c) {
    const Channel& channel = plan.channels[c];
    if (channel.buckets != counts[c] || counts[c] == 0) return Wrong("wrong count of a channel");
    if (!keys.emplace(channel.src, channel.dst, channel.transport).second) {
      return Wrong("two channels from ", channel.src, " to ", channel.dst);
    }
    if (channel.transport == TransportKind::kMessage &&
        (channel.tag < 0 || !tags.emplace(channel.src, channel.dst, channel.tag).second)) {
      return Wrong("tag ", channel.tag, " from ", channel.src, " to ", channel.dst);
    }
  }
  return absl::OkStatus();
}

bool SameRegion(const RegionRuns& a, const RegionRuns& b) {
  return a.dims == b.dims && a.first_run == b.first_run && a.extent == b.extent;
}

bool SameChannel(const Channel& a, const Channel& b) {
  return std::tie(a.src, a.dst, a.transport, a.tag, a.buckets) ==
         std::tie(b.src, b.dst, b.transport, b.tag, b.buckets);
}

}  // namespace

absl::Status CheckAgreement(const std::vector<Plan>& plans) {
  std::map<BucketId, SharedBucket> buckets;
  std::map<BucketId, size_t> views;
  for (size_t rank = 0; rank < plans.size(); ++rank) {
    if (absl::Status status = CheckChannels(plans[rank]); !status.ok()) {
      return Wrong("rank ", rank, ": ", status.message());
    }
    for (size_t b = 0; b < plans[rank].buckets.size(); ++b) {
      const Bucket& bucket = plans[rank].buckets[b];
      if (b > 0 && !(plans[rank].buckets[b - 1].id < bucket.id)) {
        return Wrong("rank ", rank, ": ", bucket.id.ToString(), " does not ascend");
      }
      const SharedBucket shared = Share(plans[rank], bucket);
      if (absl::Status s = CheckBucket(static_cast<int>(rank), bucket, shared); !s.ok()) {
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
    if (views[id] != bucket.members.size()) {
      return Wrong(id.ToString(), " is known to ", views[id], " of ", bucket.members.size());
    }
  }
  return absl::OkStatus();
}

absl::Status CheckSame(const Plan& a, const Plan& b) {
  if (a.buckets.size() != b.buckets.size()) return Wrong("numbers of buckets differ");
  for (size_t i = 0; i < a.buckets.size(); ++i) {
    const Bucket& left = a.buckets[i];
    const Bucket& right = b.buckets[i];
    if (left.id != right.id || left.role != right.role || left.channel != right.channel ||
        left.first_chunk != right.first_chunk || !(Share(a, left) == Share(b, right))) {
      return Wrong(left.id.ToString(), " differs");
    }
  }
  if (a.chunks.size() != b.chunks.size() || a.runs != b.runs || a.members != b.members ||
      a.regions.size() != b.regions.size() || a.channels.size() != b.channels.size()) {
    return Wrong("chunks, runs, regions, members or channels differ");
  }
  for (size_t i = 0; i < a.chunks.size(); ++i) {
    if (a.chunks[i].region != b.chunks[i].region) return Wrong("region of chunk ", i);
  }
  for (size_t i = 0; i < a.regions.size(); ++i) {
    if (!SameRegion(a.regions[i], b.regions[i])) return Wrong("region ", i, " differs");
  }
  for (size_t i = 0; i < a.channels.size(); ++i) {
    if (!SameChannel(a.channels[i], b.channels[i])) return Wrong("channel ", i, " differs");
  }
  if (std::tie(a.sent_bytes, a.received_bytes, a.local_bytes, a.peak_buckets_without_budget,
               a.peak_bytes_without_budget) !=
      std::tie(b.sent_bytes, b.received_bytes, b.local_bytes, b.peak_buckets_without_budget,
               b.peak_bytes_without_budget)) {
    return Wrong("totals differ");
  }
  return absl::OkStatus();
}

}  // namespace sluice::oracle
