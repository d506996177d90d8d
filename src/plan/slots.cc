// Computes how much of a slot a bucket takes, and when it takes nothing.
#include <algorithm>

#include "plan/plan.h"
#include "tensor/round.h"

namespace sluice {
namespace {

// Areas begin at a multiple of this in a slot.
constexpr int64_t kAreaAlignmentBytes = 8;

}  // namespace

std::optional<Rows> RowsAsTheyLie(const Channel& channel, const RegionSide& memory,
                                  const Chunk& chunk) {
  const std::optional<Rows> rows = RowsOf(memory, chunk.begin, chunk.end);
  if (!rows || rows->count == 1) return rows;
  if (!channel.one_node || rows->row_bytes < kRowBytesMin) return std::nullopt;
  return rows;
}

bool MayFold(const Channel& channel, const Bucket& bucket) {
  return Has(bucket.role, Role::kOwner) && channel.adds_near && channel.level_count == 1 &&
         bucket.chunk_count == 1;
}

int64_t ReductionAreaBytes(int64_t bucket_bytes, int64_t levels) {
  return bucket_bytes / (levels + 1) / kAreaAlignmentBytes * kAreaAlignmentBytes;
}

int64_t SlotBytes(const Plan& plan, const Bucket& bucket) {
  if (!Has(bucket.role, Role::kOwner)) return std::max(bucket.bytes, bucket.contribution_bytes);
  const int64_t areas = plan.channels[static_cast<size_t>(bucket.channel)].level_count + 1;
  return areas * AreaBytes(bucket);
}

int64_t AreaBytes(const Bucket& bucket) {
  return RoundUp(bucket.contribution_bytes, kAreaAlignmentBytes);
}

}  // namespace sluice
