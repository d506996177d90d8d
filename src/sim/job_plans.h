// The plans of every rank of a simulated job: the buckets of real plans, without their contents.
//
// Plans come from the planner that real jobs use. Ranks that are alike share one. If a job says
// that it looks the same from two ranks, ranks renamed, only the first is planned.
#ifndef SLUICE_SRC_SIM_JOB_PLANS_H_
#define SLUICE_SRC_SIM_JOB_PLANS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "plan/plan.h"
#include "sluice/transfer.h"

namespace sluice::sim {

// One member's part in a bucket, as far as time and limits are concerned.
struct RankBucket {
  BucketId id;  // with run 0
  int32_t channel = 0;
  int32_t bytes = 0;
  int32_t stay_bytes = 0;  // of these, what this rank needs: no gaps between tensors
  int32_t contribution_bytes = 0;
  int32_t staging_bytes = 0;
  Role role = Role::kSource;
  bool packs = false;
  bool unpacks = false;
  bool casts = false;           // an owner's result, before it is sent on
  bool tied_with_next = false;  // ids differ in nothing above the ranks
  // For a rank that adds, as in a plan and a MoveShape.
  bool own_lies : 1 = false;
  bool own_in_rows : 1 = false;
  bool sum_in_place : 1 = false;
  bool own_goes_last : 1 = false;
  bool may_fold : 1 = false;
  int32_t per_sum = 1;
};

// The peers of a channel's member: ranks, -1 for nobody.
struct RankChannel {
  int32_t parent = -1;
  int32_t owner = -1;
  int32_t first_peer = 0;  // into RankPlan::peers: the children, then, where it is the owner, the
  int32_t children = 0;    // contributors in order, -1 for itself
  int32_t contributions = 0;
  int32_t own = -1;  // which of these is its own; -1: none
};

struct RankPlan {
  std::vector<RankBucket> buckets;  // ascending id
  std::vector<RankChannel> channels;
  std::vector<int32_t> peers;
  int64_t peak_buckets_without_budget = 0;

  friend bool operator==(const RankPlan&, const RankPlan&);
};

// A rank renamed: ranks below `ranks` turn by `shift`.
struct Turn {
  int shift = 0;
  int ranks = 1;

  int Of(int rank) const {
    if (rank < 0) return rank;
    const int turned = rank + shift;
    return turned < ranks ? turned : turned - ranks;
  }
};

struct Job {
  std::string name;
  TransferSpec spec;
  int ranks = 0;
  std::vector<int> node_of_rank;
  int64_t bucket_bytes = int64_t{8} << 20;  // 0: automatic, as of a session
  int max_in_flight = 2;                    // likewise
  int64_t slots = 0;                        // of each rank; 0: no limit
  bool relay = true;                        // false: each rank is served alone
  bool coalesce = true;                     // as SessionOptions has it
  // If above 0, it divides `ranks`. The job then looks the same from rank r as from r mod period,
  // with all ranks turned by their difference. Make checks it for a sample.
  int period = 0;
};

// Immutable once made; all threads.
class JobPlans {
 public:
  // To be called now and then while plans are made; false gives up, with Cancelled.
  using Progress = std::function<bool(int ranks_done, int ranks)>;

  // Errors are those of ValidateSpec and MakePlan, and Internal if ranks that should be alike are
  // not.
  static absl::StatusOr<JobPlans> Make(const Job& job, const Progress& progress = {});

  int ranks() const { return ranks_; }
  // The plan of `rank`, whose ids and peers are to be turned.
  const RankPlan& plan(int rank) const { return plans_[static_cast<size_t>(rank % period_)]; }
  Turn turn(int rank) const { return {rank - rank % period_, ranks_}; }
  // Bytes that must have come to stay at `rank` in the end, from its layouts alone.
  int64_t needed_bytes(int rank) const { return needed_[static_cast<size_t>(rank % period_)]; }
  int64_t distinct_plans() const { return period_; }
  int64_t memory_bytes() const;
  // The knobs in force: the job's, or what automatic came to.
  int64_t bucket_bytes() const { return bucket_bytes_; }
  int max_in_flight() const { return max_in_flight_; }
  // The buckets of all ranks, each counted once.
  int64_t buckets() const { return buckets_; }

 private:
  JobPlans() = default;

  int ranks_ = 0;
  int period_ = 1;
  int64_t buckets_ = 0;
  int64_t bucket_bytes_ = 0;
  int max_in_flight_ = 0;
  std::vector<RankPlan> plans_;
  std::vector<int64_t> needed_;
};

// The plan without what has no part in a simulation.
RankPlan Summarize(const Plan& plan, const TransferSpec& spec);

// The buckets of a plan as another rank has them, in ascending order of its ids.
RankPlan Turned(const RankPlan& plan, const Turn& turn);
BucketId TurnedId(const BucketId& id, const Turn& turn);

}  // namespace sluice::sim

#endif  // SLUICE_SRC_SIM_JOB_PLANS_H_
