// Compares two plans field by field.
#include <cstddef>
#include <tuple>

#include "plan/checks.h"
#include "plan/wrong.h"

namespace sluice::oracle {
namespace {

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
