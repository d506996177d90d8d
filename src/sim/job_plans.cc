// Planning for all ranks of a job, and renaming ranks in plans.
#include "sim/job_plans.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <set>

#include "absl/strings/str_cat.h"
#include "engine/move.h"
#include "plan/box_cells.h"
#include "plan/job_planner.h"
#include "tensor/check.h"
#include "tensor/error_text.h"

namespace sluice::sim {
namespace {

// In a job that looks alike from many ranks, this many others are planned for themselves and
// compared.
constexpr int kSampledRanks = 8;
// Ranks planned between two calls of Progress.
constexpr int kProgressStride = 64;

RankChannel SummarizeChannel(const Plan& plan, const Channel& channel,
                             std::vector<int32_t>* peers) {
  RankChannel made;
  made.parent = channel.parent.peer;
  made.owner = channel.owner.peer;
  made.first_peer = static_cast<int32_t>(peers->size());
  made.children = channel.child_count;
  made.contributions = channel.added_count;
  for (int32_t i = 0; i < made.children + made.contributions; ++i) {
    peers->push_back(plan.links[static_cast<size_t>(channel.first_link + i)].peer);
    if (i >= made.children && peers->back() < 0) made.own = i - made.children;
  }
  return made;
}

absl::Span<const Chunk> ChunksOf(const Plan& plan, const Bucket& bucket) {
  return absl::MakeConstSpan(plan.chunks)
      .subspan(static_cast<size_t>(bucket.first_chunk), static_cast<size_t>(bucket.chunk_count));
}

const TensorTransfer& TensorOf(const TransferSpec& spec, const Chunk& chunk) {
  return spec.tensors[static_cast<size_t>(chunk.tensor)];
}

int64_t StayBytes(const Plan& plan, const Bucket& bucket, const TransferSpec& spec) {
  int64_t bytes = 0;
  if (bucket.role != Role::kLocal && !Has(bucket.role, Role::kDestination)) return 0;
  for (const Chunk& chunk : ChunksOf(plan, bucket)) {
    bytes += (chunk.end - chunk.begin) * DTypeBytes(WireDType(TensorOf(spec, chunk)));
  }
  return bytes;
}

bool Casts(const Plan& plan, const Bucket& bucket, const TransferSpec& spec) {
  if (!OwnsResult(bucket.role)) return false;
  const absl::Span<const Chunk> chunks = ChunksOf(plan, bucket);
  return std::any_of(chunks.begin(), chunks.end(), [&spec](const Chunk& chunk) {
    const TensorTransfer& tensor = TensorOf(spec, chunk);
    return tensor.src_dtype != WireDType(tensor);
  });
}

bool SamePhase(const BucketId& a, const BucketId& b) {
  const BucketIdFields x = a.fields(), y = b.fields();
  return x.window == y.window && x.round == y.round && x.phase == y.phase;
}

// Bytes on the wire of what `rank` is to have.
absl::StatusOr<int64_t> NeededBytes(const TransferSpec& spec, int rank) {
  int64_t bytes = 0;
  for (const TensorTransfer& tensor : spec.tensors) {
    if (!tensor.dst.mesh.PositionOf(rank)) continue;
    SLUICE_ASSIGN_OR_RETURN(const std::vector<int64_t> shape,
                            LocalShape(tensor.dst, tensor.shape, rank));
    bytes += std::accumulate(shape.begin(), shape.end(), DTypeBytes(WireDType(tensor)),
                             std::multiplies<>());
  }
  return bytes;
}

absl::Status CheckSample(const Job& job, const TransferSpec& spec, const JobPlans& plans,
                         JobPlanner* planner) {
  std::set<int> sample;
  for (int64_t i = 1; i <= kSampledRanks; ++i) {
    sample.insert(static_cast<int>(i * (job.ranks - 1) / kSampledRanks));
  }
  for (const int rank : sample) {
    SLUICE_ASSIGN_OR_RETURN(const Plan plan, planner->PlanOf(rank));
    if (!(Summarize(plan, spec) == Turned(plans.plan(rank), plans.turn(rank)))) {
      return absl::InternalError(absl::StrCat("job '", job.name, "': rank ", rank,
                                              " is not planned like rank ", rank % job.period));
    }
  }
  return absl::OkStatus();
}

}  // namespace

RankPlan Summarize(const Plan& plan, const TransferSpec& spec) {
  RankPlan made;
  made.peak_buckets_without_budget = plan.peak_buckets_without_budget;
  made.channels.reserve(plan.channels.size());
  for (const Channel& channel : plan.channels) {
    made.channels.push_back(SummarizeChannel(plan, channel, &made.peers));
  }
  made.buckets.reserve(plan.buckets.size());
  for (const Bucket& bucket : plan.buckets) {
    RankBucket part;
    part.id = bucket.id;
    part.channel = bucket.channel;
    part.bytes = static_cast<int32_t>(bucket.bytes);
    part.stay_bytes = static_cast<int32_t>(StayBytes(plan, bucket, spec));
    part.contribution_bytes = static_cast<int32_t>(bucket.contribution_bytes);
    part.staging_bytes = static_cast<int32_t>(bucket.staging_bytes);
    part.role = bucket.role;
    part.packs = bucket.packs;
    part.unpacks = bucket.unpacks;
    part.casts = Casts(plan, bucket, spec);
    part.own_lies = bucket.own_lies;
    part.own_in_rows = bucket.own_in_rows;
    part.sum_in_place = bucket.sum_in_place;
    const MoveShape shape = ShapeOf(plan, bucket);
    part.own_goes_last = shape.own_goes_last;
    part.per_sum = shape.per_sum;
    part.may_fold = MayFold(plan.channels[static_cast<size_t>(bucket.channel)], bucket);
    made.buckets.push_back(part);
  }
  for (size_t i = 1; i < made.buckets.size(); ++i) {
    made.buckets[i - 1].tied_with_next = SamePhase(made.buckets[i - 1].id, made.buckets[i].id);
  }
  return made;
}

BucketId TurnedId(const BucketId& id, const Turn& turn) {
  BucketIdFields fields = id.fields();
  fields.src = static_cast<uint64_t>(turn.Of(static_cast<int>(fields.src)));
  fields.dst = static_cast<uint64_t>(turn.Of(static_cast<int>(fields.dst)));
  return BucketId(fields);
}

RankPlan Turned(const RankPlan& plan, const Turn& turn) {
  RankPlan turned = plan;
  for (int32_t& peer : turned.peers) peer = turn.Of(peer);
  for (RankChannel& channel : turned.channels) {
    channel.parent = turn.Of(channel.parent);
    channel.owner = turn.Of(channel.owner);
  }
  for (RankBucket& bucket : turned.buckets) bucket.id = TurnedId(bucket.id, turn);
  std::sort(turned.buckets.begin(), turned.buckets.end(),
            [](const RankBucket& a, const RankBucket& b) { return a.id < b.id; });
  return turned;
}

// Channels may be numbered differently: what counts is what each bucket's channel is.
bool operator==(const RankPlan& a, const RankPlan& b) {
  const auto same_channel = [&a, &b](const RankBucket& x, const RankBucket& y) {
    const RankChannel& p = a.channels[static_cast<size_t>(x.channel)];
    const RankChannel& q = b.channels[static_cast<size_t>(y.channel)];
    const auto peers = [](const RankPlan& plan, const RankChannel& channel) {
      return absl::MakeConstSpan(plan.peers)
          .subspan(static_cast<size_t>(channel.first_peer),
                   static_cast<size_t>(channel.children + channel.contributions));
    };
    return p.parent == q.parent && p.owner == q.owner && p.children == q.children &&
           p.contributions == q.contributions && peers(a, p) == peers(b, q);
  };
  const auto same = [&same_channel](const RankBucket& x, const RankBucket& y) {
    return x.id == y.id && x.bytes == y.bytes && x.stay_bytes == y.stay_bytes &&
           x.contribution_bytes == y.contribution_bytes && x.staging_bytes == y.staging_bytes &&
           x.role == y.role && x.packs == y.packs && x.unpacks == y.unpacks && x.casts == y.casts &&
           x.own_lies == y.own_lies && x.own_in_rows == y.own_in_rows &&
           x.sum_in_place == y.sum_in_place && x.own_goes_last == y.own_goes_last &&
           x.may_fold == y.may_fold && x.per_sum == y.per_sum && same_channel(x, y);
  };
  return a.channels.size() == b.channels.size() &&
         a.peak_buckets_without_budget == b.peak_buckets_without_budget &&
         std::equal(a.buckets.begin(), a.buckets.end(), b.buckets.begin(), b.buckets.end(), same);
}

absl::StatusOr<JobPlans> JobPlans::Make(const Job& job, const Progress& progress) {
  SLUICE_RETURN_IF_ERROR(ValidateSpec(job.spec, job.ranks));
  SLUICE_CHECK(job.period == 0 || (job.period <= job.ranks && job.ranks % job.period == 0),
               "a period that does not divide the ranks");
  PlanOptions options;
  options.bucket_bytes = job.bucket_bytes;
  options.max_in_flight = job.max_in_flight;
  options.node_of_rank = job.node_of_rank;
  options.slots = job.slots;
  options.relay = job.relay;
  options.coalesce = job.coalesce;
  options.cache_bytes = 0;  // copies are modelled as those of devices
  CellSpec cells;
  if (HasBoxes(job.spec)) {
    SLUICE_ASSIGN_OR_RETURN(cells, CutIntoCells(job.spec));
  }
  const TransferSpec& spec = HasBoxes(job.spec) ? cells.spec : job.spec;
  JobPlanner planner(spec, options);
  JobPlans plans;
  plans.ranks_ = job.ranks;
  plans.period_ = job.period > 0 ? job.period : job.ranks;
  plans.plans_.reserve(static_cast<size_t>(plans.period_));
  for (int rank = 0; rank < plans.period_; ++rank) {
    if (rank % kProgressStride == 0 && progress && !progress(rank, plans.period_)) {
      return absl::CancelledError(
          absl::StrCat("stopped after planning for ", rank, " of ", plans.period_, " ranks"));
    }
    SLUICE_ASSIGN_OR_RETURN(const Plan plan, planner.PlanOf(rank));
    plans.bucket_bytes_ = plan.bucket_bytes;
    plans.max_in_flight_ = plan.max_in_flight;
    plans.plans_.push_back(Summarize(plan, spec));
    // A bucket counts at the member that its id names first.
    for (const RankBucket& bucket : plans.plans_.back().buckets) {
      if (static_cast<int>(bucket.id.fields().src) == rank) ++plans.buckets_;
    }
  }
  plans.buckets_ *= job.ranks / plans.period_;
  for (int rank = 0; rank < plans.period_; ++rank) {
    SLUICE_ASSIGN_OR_RETURN(const int64_t bytes, NeededBytes(spec, rank));
    plans.needed_.push_back(bytes);
  }
  if (plans.period_ < job.ranks) {
    SLUICE_RETURN_IF_ERROR(CheckSample(job, spec, plans, &planner));
  }
  return plans;
}

int64_t JobPlans::memory_bytes() const {
  size_t bytes = needed_.capacity() * sizeof(int64_t);
  for (const RankPlan& plan : plans_) {
    bytes += sizeof(plan) + plan.buckets.capacity() * sizeof(RankBucket) +
             plan.channels.capacity() * sizeof(RankChannel) +
             plan.peers.capacity() * sizeof(int32_t);
  }
  return static_cast<int64_t>(bytes);
}

}  // namespace sluice::sim
