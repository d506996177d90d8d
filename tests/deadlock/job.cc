// How jobs get their channels and runs, and how they are written down.
#include "deadlock/job.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace sluice::deadlock {

std::string Job::ToString() const {
  std::string text = absl::StrCat("late ranks ", late_ranks, ", cancelled run ", cancelled_run,
                                  ", slots ", options.slots, ", max_in_flight ",
                                  options.max_in_flight, ", look_ahead ", options.look_ahead, "\n");
  for (size_t i = 0; i < buckets.size(); ++i) {
    absl::StrAppend(&text, "bucket ", i, " run ", run[i], " lane ", LaneOf(run[i]), " channel ",
                    channel[i], ":");
    for (const JobMember& member : buckets[i]) {
      absl::StrAppend(&text, " rank ", member.rank, " stages ", int{member.stages},
                      member.owner ? " owner;" : ";");
    }
    absl::StrAppend(&text, "\n");
  }
  return text;
}

Job WithChannels(int ranks, const EngineOptions& options, std::vector<JobBucket> buckets) {
  Job job{
      .ranks = ranks, .options = options, .buckets = std::move(buckets), .channel = {}, .run = {}};
  job.run.resize(job.buckets.size());
  std::map<std::vector<int>, int> channels;
  for (const JobBucket& bucket : job.buckets) {
    std::vector<int> ends;
    for (const JobMember& member : bucket) ends.push_back(member.rank);
    const int next = static_cast<int>(channels.size());
    job.channel.push_back(channels.try_emplace(ends, next).first->second);
  }
  job.options.channels = static_cast<int>(channels.size());
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

}  // namespace sluice::deadlock
