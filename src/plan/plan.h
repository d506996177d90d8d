// One rank's part of a transfer: its buckets in id order, what is in them, and their channels.
//
// Planning is pure and local: every rank computes only its own part, from data that all ranks have,
// by interval arithmetic, and both ends of a bucket come to the same result. Nothing here knows
// memory addresses.
#ifndef SLUICE_SRC_PLAN_PLAN_H_
#define SLUICE_SRC_PLAN_PLAN_H_

#include <array>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "plan/bucket.h"
#include "sluice/layout.h"
#include "sluice/tensor.h"
#include "sluice/transfer.h"
#include "tensor/run.h"

namespace sluice {

struct PlanOptions {
  int64_t bucket_bytes = int64_t{8} << 20;
  int max_in_flight = 2;
  absl::Span<const int> node_of_rank;  // one per rank of the job
};

// The part of one tensor inside one bucket, on this rank's side. A source's runs lead from its
// local tensor (src) to the wire region (dst), a destination's from the wire region to its local
// tensor, a local one's from local tensor to local tensor.
struct Chunk {
  int32_t tensor = 0;
  int32_t region = 0;  // index into Plan::regions
  int64_t begin = 0;   // elements [begin, end) of the region, row-major
  int64_t end = 0;
  int64_t bucket_offset = 0;  // bytes
};

// A product of index lists in this rank's terms. Runs of dimension d are
// Plan::runs[first_run[d] .. first_run[d+1]).
struct RegionRuns {
  int8_t dims = 0;
  std::array<int32_t, kMaxTensorDims + 1> first_run{};
  std::array<int64_t, kMaxTensorDims> extent{};  // elements per dimension
};

struct Bucket {
  BucketId id;                // with run 0
  Role role = Role::kSource;  // this rank's
  int32_t channel = 0;
  int64_t bytes = 0;
  int64_t first_chunk = 0;
  int32_t chunk_count = 0;
  int32_t first_member = 0;  // index into Plan::members: the source, then the destinations
  int32_t member_count = 0;
};

struct Channel {
  int src = -1;
  int dst = -1;
  TransportKind transport = TransportKind::kMessage;
  int tag = 0;  // tells apart channels between the same two ranks; equal at both ends
  int64_t buckets = 0;
};

struct Plan {
  std::vector<Bucket> buckets;  // ascending id
  std::vector<Chunk> chunks;
  std::vector<RegionRuns> regions;
  std::vector<Run> runs;
  std::vector<Member> members;
  std::vector<Channel> channels;
  int64_t sent_bytes = 0;
  int64_t received_bytes = 0;
  int64_t local_bytes = 0;
  int64_t peak_buckets_without_budget = 0;
  int64_t peak_bytes_without_budget = 0;
};

// OK if `spec` is a transfer between ranks 0 .. job_ranks-1 that can be planned; otherwise names
// the tensor and what is wrong with it.
absl::Status ValidateSpec(const TransferSpec& spec, int job_ranks);

// `rank`'s part of `spec`, which ValidateSpec has accepted.
absl::StatusOr<Plan> MakePlan(const TransferSpec& spec, const PlanOptions& options, int rank);

// A hash of all that must agree between ranks, by parts so that a difference can be named.
struct PlanHash {
  uint64_t names = 0;    // tensor count and names
  uint64_t tensors = 0;  // shapes and dtypes
  uint64_t layouts = 0;  // meshes, ranks, placements
  uint64_t options = 0;  // PlanOptions
  uint64_t all = 0;      // of the four
};
PlanHash HashPlan(const TransferSpec& spec, const PlanOptions& options);

}  // namespace sluice

#endif  // SLUICE_SRC_PLAN_PLAN_H_
