// What a sweep over random jobs has met, so that it can be shown to have met what it is for.
#ifndef SLUICE_TESTS_PLAN_COVERAGE_H_
#define SLUICE_TESTS_PLAN_COVERAGE_H_

#include <cstdint>

#include "plan/plan.h"

namespace sluice::oracle {

// Buckets, unless it says otherwise; each counts once, at its root.
struct Coverage {
  int64_t messages = 0;
  int64_t locals = 0;
  int64_t joined = 0;   // buckets of several chunks
  int64_t split = 0;    // chunks that are not all of their region
  int64_t windows = 0;  // buckets of windows other than 0
  int64_t idle_ranks = 0;
  int64_t divided = 0;  // needs that several senders divide between them
  // Of three destinations or more, as two do not tell them apart.
  int64_t stars = 0;
  int64_t chains = 0;
  int64_t trees = 0;
  int64_t reductions = 0;
  int64_t deep_reductions = 0;      // over several mesh dimensions
  int64_t gathered_reductions = 0;  // sums of nodes cross
  int64_t adders_that_need = 0;     // parts of ranks in buckets
  int64_t owners_that_only_need = 0;
  int64_t owners_that_need = 0;
  int64_t contributors_that_need = 0;  // parts of ranks in buckets
  int64_t contributors_alone = 0;      // likewise

  void Count(int rank, const Plan& plan);

 private:
  void CountRoot(const Plan& plan, const Bucket& bucket);
  void CountDivided(const Plan& plan);
};

}  // namespace sluice::oracle

#endif  // SLUICE_TESTS_PLAN_COVERAGE_H_
