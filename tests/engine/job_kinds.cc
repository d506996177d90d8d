// Making of jobs: by hand, all of a kind.
#include "job_kinds.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

namespace sluice::deadlock {
namespace {

constexpr StageSet kSource = kStageFill | kStageMove;
constexpr StageSet kSink = kStageMove | kStageDrain;

std::vector<JobBucket> Renamed(std::vector<JobBucket> buckets, const std::vector<int>& names) {
  for (JobBucket& bucket : buckets) {
    for (JobMember& member : bucket) member.rank = names[static_cast<size_t>(member.rank)];
  }
  return buckets;
}

}  // namespace

JobBucket Pair(int src, int dst) {
  return {{.rank = src, .stages = kSource}, {.rank = dst, .stages = kSink}};
}

JobBucket Relayed(int src, int relay, int dst) {
  return {{.rank = src, .stages = kSource},
          {.rank = relay, .stages = kStageMove},
          {.rank = dst, .stages = kSink}};
}

JobBucket Alone(int rank, StageSet stages) { return {{.rank = rank, .stages = stages}}; }

std::vector<JobBucket> PairsAmong(int ranks) {
  std::vector<JobBucket> kinds;
  for (int src = 0; src < ranks; ++src) {
    for (int dst = 0; dst < ranks; ++dst) {
      if (src != dst) kinds.push_back(Pair(src, dst));
    }
  }
  return kinds;
}

std::vector<JobBucket> AllKindsBetweenTwo() {
  std::vector<JobBucket> kinds = PairsAmong(2);
  for (const int rank : {0, 1}) kinds.push_back(Alone(rank, kStageFill | kStageDrain));
  return kinds;
}

std::vector<JobBucket> AllKindsAmongThree() {
  std::vector<JobBucket> kinds = PairsAmong(3);
  for (const JobBucket& relayed : {Relayed(0, 1, 2), Relayed(1, 2, 0), Relayed(2, 0, 1)}) {
    kinds.push_back(relayed);
  }
  return kinds;
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

}  // namespace sluice::deadlock
