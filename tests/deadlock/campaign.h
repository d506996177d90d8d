// Many random jobs under one rule: how many stall, and the smallest that does.
#ifndef SLUICE_TESTS_DEADLOCK_CAMPAIGN_H_
#define SLUICE_TESTS_DEADLOCK_CAMPAIGN_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "deadlock/job.h"
#include "deadlock/rules.h"

namespace sluice::deadlock {

inline constexpr int kRanksMin = 2;
inline constexpr int kRanksMost = 32;

struct CampaignOptions {
  Rules rules = {};
  uint64_t seed = 0;
  int64_t first = 0;  // the first run's number
  int64_t runs = 1000;
  int ranks_max = 8;  // kRanksMin to kRanksMost
};

// A run that stalled, shrunk.
struct Smallest {
  int64_t run = 0;  // which one it was
  Job job;
  std::string script;
};

struct CampaignResult {
  int64_t runs = 0;
  int64_t stalled = 0;
  int64_t first_stalled = -1;  // the number of the first stalled run
  int64_t events = 0;
  int64_t buckets = 0;
  int64_t reached_budget = 0;  // runs in which some rank held all its slots
  std::optional<Smallest> smallest;
};

// Run i of a seed is a function of both alone, whatever the rule. `go_on` is asked before each run,
// with what is known so far but for the smallest stalled run, and ends the campaign by false.
CampaignResult RunCampaign(const CampaignOptions& options,
                           const std::function<bool(const CampaignResult&)>& go_on);

}  // namespace sluice::deadlock

#endif  // SLUICE_TESTS_DEADLOCK_CAMPAIGN_H_
