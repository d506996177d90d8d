// Running the jobs, and choosing which of the stalled ones to shrink.
#include "deadlock/campaign.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "deadlock/random.h"
#include "deadlock/random_job.h"
#include "deadlock/script_writer.h"
#include "deadlock/shrink.h"
#include "deadlock/world.h"

namespace sluice::deadlock {
namespace {

// Shrinking ends at different jobs, so a few are tried.
constexpr size_t kShrunkMost = 4;

struct Candidate {
  int64_t run = 0;
  int size = 0;
  StalledJob stalled;
};

void KeepSmall(Candidate candidate, std::vector<Candidate>* smallest) {
  const auto after =
      std::upper_bound(smallest->begin(), smallest->end(), candidate,
                       [](const Candidate& a, const Candidate& b) { return a.size < b.size; });
  smallest->insert(after, std::move(candidate));
  if (smallest->size() > kShrunkMost) smallest->pop_back();
}

std::optional<Smallest> ShrinkBest(const std::vector<Candidate>& candidates, const Rules& rules) {
  std::optional<Candidate> best;
  for (const Candidate& candidate : candidates) {
    const StalledJob shrunk = Shrink(candidate.stalled, rules);
    const int size = SizeOf(shrunk.job);
    if (!best || size < best->size) best = {.run = candidate.run, .size = size, .stalled = shrunk};
  }
  if (!best) return std::nullopt;
  const StalledJob& stalled = best->stalled;
  const Outcome outcome = Play(stalled.job, rules, stalled.order, Keep::kTrace);
  return Smallest{
      .run = best->run, .job = stalled.job, .script = ScriptOf(stalled.job, rules, outcome)};
}

}  // namespace

CampaignResult RunCampaign(const CampaignOptions& options,
                           const std::function<bool(const CampaignResult&)>& go_on) {
  CampaignResult result;
  std::vector<Candidate> candidates;
  for (int64_t i = 0; i < options.runs && go_on(result); ++i) {
    const int64_t run = options.first + i;
    Random random(options.seed, static_cast<uint64_t>(run));
    const Job job = RandomJob(random, options.ranks_max);
    const Outcome outcome = Play(job, options.rules, random);
    ++result.runs;
    result.events += outcome.events;
    result.buckets += static_cast<int64_t>(job.buckets.size());
    result.reached_budget += outcome.peak_slots == job.options.slots ? 1 : 0;
    if (outcome.complete) continue;
    if (result.stalled++ == 0) result.first_stalled = run;
    KeepSmall({.run = run, .size = SizeOf(job), .stalled = {.job = job, .order = random}},
              &candidates);
  }
  result.smallest = ShrinkBest(candidates, options.rules);
  return result;
}

}  // namespace sluice::deadlock
