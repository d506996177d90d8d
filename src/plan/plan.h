// One rank's part of a transfer: its buckets in id order, what is in them, and their channels.
//
// Planning is pure and local. Every rank computes only its own part, by interval arithmetic, from
// data that all ranks have. Both ends of a bucket come to the same result. Nothing here knows
// memory addresses.
#ifndef SLUICE_SRC_PLAN_PLAN_H_
#define SLUICE_SRC_PLAN_PLAN_H_

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "mesh/partition.h"
#include "plan/bucket.h"
#include "sluice/layout.h"
#include "sluice/tensor.h"
#include "sluice/transfer.h"
#include "tensor/contiguity.h"
#include "tensor/stretch.h"

namespace sluice {

struct PlanOptions {
  int64_t bucket_bytes = 0;            // 0: automatic (plan/auto_knobs.h)
  int max_in_flight = 0;               // likewise
  absl::Span<const int> node_of_rank;  // one per rank of the job
  int64_t slots = 0;     // buckets that a rank may hold at once, on all ranks; 0: no limit
  bool relay = true;     // false: each rank is served alone
  bool coalesce = true;  // as SessionOptions has it
  // Automatic knobs depend on these beside the transfer. Equal on all ranks.
  int64_t slot_bytes = int64_t{8} << 20;   // the most bytes of an automatic bucket
  int64_t cache_bytes = int64_t{4} << 20;  // a CPU's share of the last cache
};

// The part of one tensor inside one bucket, on this rank's side. The runs of a region lead from
// `src` to `dst`. At a source or contributor, `src` is its local tensor and `dst` the wire. At a
// destination, `src` is the wire and `dst` its local tensor. Both are local tensors if the rank is
// source and destination.
struct Chunk {
  int32_t tensor = 0;
  int32_t region = 0;       // index into Plan::regions; in a reduction, of what is contributed
  int32_t dst_region = -1;  // of what an owner or contributor takes as a destination; -1: nothing
  int64_t begin = 0;        // elements [begin, end) of the region, row-major
  int64_t end = 0;
  int64_t bucket_offset = 0;        // bytes; elements are of the wire dtype
  int64_t contribution_offset = 0;  // the same in a contribution: elements are of the source dtype
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
  // Whether a rank with dense tensors copies between memory and slot. The copies take staging_bytes
  // of the slot.
  bool packs = false;    // before the bytes cross
  bool unpacks = false;  // after the bytes have crossed
  // For a rank that adds, with dense tensors again. Its own contribution lies as it crosses, in one
  // stretch (own_lies) or in rows. The sum can be made where the result goes.
  bool own_lies : 1 = false;
  bool own_in_rows : 1 = false;
  bool sum_in_place : 1 = false;
  int32_t channel = 0;
  int64_t staging_bytes = 0;
  int64_t bytes = 0;               // that a destination gets
  int64_t contribution_bytes = 0;  // that an owner gets of each contributor; 0: no reduction
  int64_t first_chunk = 0;
  int32_t chunk_count = 0;
};

// The other end of what this rank sends to, or receives from, one rank in a channel.
struct Link {
  int peer = -1;  // -1: there is none
  int tag = 0;    // tells apart the links that lead from one rank to another; equal at both ends

  friend bool operator==(const Link&, const Link&) = default;
};

// Buckets with equal members.
struct Channel {
  int src = -1;  // the source, or the owner of a reduction
  int dst = -1;  // the first destination
  TransportKind transport = TransportKind::kMessage;
  // Into Plan::members: src first, then the other destinations, parents before their children, then
  // the contributors that are neither.
  int32_t first_member = 0;
  int32_t member_count = 0;
  int32_t self = 0;               // this rank among them
  int32_t depth = 0;              // links between the root and this rank; 0: it is the root
  int32_t own_contribution = -1;  // the number of this rank's contribution; -1: it gives none
  // The number of steps in which contributions are added (plan/gathering.h), 0 if nothing is
  // reduced. This rank takes part in step `step`. It adds up `added_count` inputs itself, beginning
  // with contribution `first_added`. The sum of the steps before, if there are any, is one of these
  // inputs.
  int32_t step_count = 0;
  int32_t step = 0;
  int32_t first_added = 0;
  int32_t added_count = 0;
  // Contributions are in Plan::contributions: the members in the order of addition. Levels are in
  // Plan::levels. There are none unless this is a reduction. An owner contributes too, unless it is
  // only a destination.
  int32_t first_contribution = 0;
  int32_t contribution_count = 0;
  int32_t first_level = 0;
  int32_t level_count = 0;
  // This rank's links. Links to its children are in Plan::links, from first_link on. If this rank
  // adds up, a link for each input follows, in the order of addition; its own input has no peer.
  // `owner` leads to the rank that gets this rank's contribution or sum. The same rank may be a
  // child too: then two links lead to it.
  Link parent;
  Link owner;
  int32_t first_link = 0;
  int32_t child_count = 0;
  bool one_node = false;   // all members are ranks of one node
  bool adds_near = false;  // all that it adds up comes from its node
  int64_t buckets = 0;
};

struct Plan {
  int64_t bucket_bytes = 0;     // the knobs in force
  int max_in_flight = 0;        // of each channel
  std::vector<Bucket> buckets;  // ascending id
  std::vector<Chunk> chunks;
  std::vector<RegionRuns> regions;
  std::vector<Stretch> runs;
  std::vector<Member> members;
  std::vector<Channel> channels;
  std::vector<int32_t> contributions;
  std::vector<Level> levels;
  std::vector<Link> links;
  int64_t sent_bytes = 0;  // to other ranks, on the wire: contributions and relays included
  int64_t received_bytes =
      0;  // that came here to stay from other ranks, or was reduced here to stay
  int64_t local_bytes = 0;
  int64_t peak_buckets_without_budget = 0;
  int64_t peak_bytes_without_budget = 0;
};

// The dtype in which a tensor's elements cross: the smaller one; of equal sizes, the source's.
DType WireDType(const TensorTransfer& tensor);

// True if elements of the tensor have to be reduced: a Partial mesh dimension of several ranks.
bool IsReduced(const TensorTransfer& tensor);

// True if an owner may leave the adding to a transport that folds, and reads the contributions
// where they lie.
bool MayFold(const Channel& channel, const Bucket& bucket);

// A reduction keeps an accumulator per level and a contribution in one slot. Returns the most bytes
// of each, or 0 if the slot is too small.
int64_t ReductionAreaBytes(int64_t bucket_bytes, int64_t levels);

// Shorter rows cost a transport more than they cost the device, which has loops for them.
inline constexpr int64_t kRowBytesMin = 256;

// The rows in memory of a bucket's only chunk, if the chunk can cross without a copy. One row can.
// Several rows can between ranks of one node, if the rows are long enough. The transport then
// copies them as fast as the device would. `memory`: the chunk's region on this side.
std::optional<Rows> RowsAsTheyLie(const Channel& channel, const RegionSide& memory,
                                  const Chunk& chunk);

// The most staging that this rank's part of a bucket can take: the bytes of its slot.
int64_t SlotBytes(const Plan& plan, const Bucket& bucket);

// The bytes of an area of an owner's slot. The accumulator of level k begins at k areas, and the
// contribution that is being received after all of them.
int64_t AreaBytes(const Bucket& bucket);

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
  uint64_t options = 0;  // PlanOptions, windows, priority class
  uint64_t all = 0;      // of the four
};
PlanHash HashPlan(const TransferSpec& spec, const PlanOptions& options);

}  // namespace sluice

#endif  // SLUICE_SRC_PLAN_PLAN_H_
