// Making of jobs: by hand, all of a kind, at random.
#include "job.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace sluice {
namespace {

constexpr StageSet kSource = kStageFill | kStageMove;
constexpr StageSet kSink = kStageMove | kStageDrain;

int Draw(std::mt19937& random, int low, int high) {
  return std::uniform_int_distribution<int>(low, high)(random);
}

JobBucket RandomBucket(std::mt19937& random, int ranks, int slots_max) {
  if (Draw(random, 0, 9) == 0) return {{.rank = Draw(random, 0, ranks - 1), .stages = kStageDrain}};
  std::vector<int> order(static_cast<size_t>(ranks));
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  const int members = Draw(random, 0, 3) > 0 ? 2 : Draw(random, 2, std::min(ranks, 4));
  JobBucket bucket;
  for (int i = 0; i < members; ++i) {
    StageSet stages = i == 0 ? kSource : kSink;
    if (Draw(random, 0, 3) == 0) stages = kStageMove;
    bucket.push_back({.rank = order[static_cast<size_t>(i)],
                      .stages = stages,
                      .slots = Draw(random, 1, slots_max)});
  }
  return bucket;
}

std::vector<JobBucket> Renamed(std::vector<JobBucket> buckets, const std::vector<int>& names) {
  for (JobBucket& bucket : buckets) {
    for (JobMember& member : bucket) member.rank = names[static_cast<size_t>(member.rank)];
  }
  return buckets;
}

}  // namespace

std::string Job::ToString() const {
  std::string text =
      absl::StrCat("late ranks ", late_ranks, ", cancelled run ", cancelled_run, ", slots ",
                   options.slots, ", dearest ", options.slots_per_bucket_max, ", max_in_flight ",
                   options.max_in_flight, ", look_ahead ", options.look_ahead, "\n");
  for (size_t i = 0; i < buckets.size(); ++i) {
    absl::StrAppend(&text, "bucket ", i, " run ", run[i], " lane ", LaneOf(run[i]), " channel ",
                    channel[i], ":");
    for (const JobMember& member : buckets[i]) {
      absl::StrAppend(&text, " rank ", member.rank, " stages ", int{member.stages}, " slots ",
                      member.slots, ";");
    }
    absl::StrAppend(&text, "\n");
  }
  return text;
}

JobBucket Pair(int src, int dst, int dst_slots) {
  return {{.rank = src, .stages = kSource}, {.rank = dst, .stages = kSink, .slots = dst_slots}};
}

JobBucket Relayed(int src, int relay, int dst) {
  return {{.rank = src, .stages = kSource},
          {.rank = relay, .stages = kStageMove, .slots = 2},
          {.rank = dst, .stages = kSink}};
}

JobBucket Alone(StageSet stages, int slots) {
  return {{.rank = 0, .stages = stages, .slots = slots}};
}

std::vector<JobBucket> PairsAmong(int ranks, int dst_slots) {
  std::vector<JobBucket> kinds;
  for (int src = 0; src < ranks; ++src) {
    for (int dst = 0; dst < ranks; ++dst) {
      if (src != dst) kinds.push_back(Pair(src, dst, dst_slots));
    }
  }
  return kinds;
}

std::vector<JobBucket> AllKindsAmongThree() {
  std::vector<JobBucket> kinds = PairsAmong(3, 1);
  for (const JobBucket& dear : PairsAmong(3, 2)) kinds.push_back(dear);
  for (const JobBucket& relayed : {Relayed(0, 1, 2), Relayed(1, 2, 0), Relayed(2, 0, 1)}) {
    kinds.push_back(relayed);
  }
  return kinds;
}

Job WithChannels(int ranks, const EngineOptions& options, std::vector<JobBucket> buckets) {
  Job job{
      .ranks = ranks, .options = options, .buckets = std::move(buckets), .channel = {}, .run = {}};
  job.run.resize(job.buckets.size());
  std::map<std::vector<int>, int> channels;
  int dearest = 1;
  for (const JobBucket& bucket : job.buckets) {
    std::vector<int> ends;
    for (const JobMember& member : bucket) {
      ends.push_back(member.rank);
      dearest = std::max(dearest, member.slots);
    }
    const int next = static_cast<int>(channels.size());
    job.channel.push_back(channels.try_emplace(ends, next).first->second);
  }
  job.options.channels = static_cast<int>(channels.size());
  job.options.slots_per_bucket_max = dearest;
  job.options.slots = std::max(job.options.slots, dearest);
  return job;
}

Job WithRuns(Job job, std::vector<int> run, std::vector<int> lane) {
  job.run = std::move(run);
  job.lane = std::move(lane);
  std::map<std::pair<int, int>, int> channels;
  for (size_t i = 0; i < job.buckets.size(); ++i) {
    const int next = static_cast<int>(channels.size());
    const std::pair<int, int> key = {job.LaneOf(job.run[i]), job.channel[i]};
    job.channel[i] = channels.try_emplace(key, next).first->second;
  }
  job.options.channels = static_cast<int>(channels.size());
  job.options.lanes = 1 + *std::max_element(job.lane.begin(), job.lane.end());
  return job;
}

std::vector<std::vector<int>> AllSequences(int base, int digits) {
  std::vector<std::vector<int>> all;
  std::vector<int> digit(static_cast<size_t>(digits), 0);
  while (true) {
    all.push_back(digit);
    size_t i = 0;
    while (i < digit.size() && ++digit[i] == base) digit[i++] = 0;
    if (i == digit.size()) return all;
  }
}

std::vector<std::vector<JobBucket>> AllJobs(int ranks, const std::vector<JobBucket>& kinds,
                                            int count) {
  std::set<std::vector<JobBucket>> classes;
  for (const std::vector<int>& choice : AllSequences(static_cast<int>(kinds.size()), count)) {
    std::vector<JobBucket> buckets;
    buckets.reserve(choice.size());
    for (const int kind : choice) buckets.push_back(kinds[static_cast<size_t>(kind)]);
    std::vector<int> names(static_cast<size_t>(ranks));
    std::iota(names.begin(), names.end(), 0);
    std::vector<JobBucket> smallest = buckets;
    while (std::next_permutation(names.begin(), names.end())) {
      smallest = std::min(smallest, Renamed(buckets, names));
    }
    classes.insert(std::move(smallest));
  }
  return {classes.begin(), classes.end()};
}

Job RandomJob(std::mt19937& random, int ranks_max) {
  const int ranks = Draw(random, 2, ranks_max);
  const int slots_max = Draw(random, 1, kMaxSlotsPerBucket);
  EngineOptions options;
  options.slots = Draw(random, 1, 4);
  options.max_in_flight = Draw(random, 1, 3);
  options.look_ahead = Draw(random, 1, 12);
  // Buckets repeat, so that channels have several.
  std::vector<JobBucket> kinds(static_cast<size_t>(Draw(random, 1, 3 * ranks)));
  for (JobBucket& kind : kinds) kind = RandomBucket(random, ranks, slots_max);
  std::vector<JobBucket> buckets(static_cast<size_t>(Draw(random, ranks, 8 * ranks)));
  for (JobBucket& bucket : buckets) {
    bucket = kinds[static_cast<size_t>(Draw(random, 0, static_cast<int>(kinds.size()) - 1))];
  }
  return WithChannels(ranks, options, std::move(buckets));
}

}  // namespace sluice
