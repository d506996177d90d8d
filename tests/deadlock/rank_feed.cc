// Feeds one rank with its view of a job.
#include "deadlock/rank_feed.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <tuple>
#include <vector>

namespace sluice::deadlock {
namespace {

// Numbers the rank's channels by their first buckets, beginning to count at `first`.
int RenumberChannels(int first, std::vector<JobPart>* parts) {
  std::map<int, int> number;
  for (const JobPart& part : *parts) {
    number.try_emplace(part.channel, static_cast<int>(number.size()));
  }
  const auto count = static_cast<int>(number.size());
  for (JobPart& part : *parts) {
    part.channel = (number[part.channel] + count - first % count) % count;
  }
  return count;
}

}  // namespace

std::vector<JobPart> PartsOf(const Job& job, int rank) {
  std::vector<JobPart> parts;
  for (size_t i = 0; i < job.buckets.size(); ++i) {
    for (const JobMember& member : job.buckets[i]) {
      if (member.rank != rank) continue;
      parts.push_back({.bucket = i,
                       .run = job.run[i],
                       .lane = job.LaneOf(job.run[i]),
                       .channel = job.channel[i],
                       .member = member});
    }
  }
  return parts;
}

RankView ViewOf(const Job& job, int rank, bool in_own_start_order) {
  const auto r = static_cast<size_t>(rank);
  RankView view{.options = job.options, .parts = PartsOf(job, rank), .lane = job.lane};
  if (in_own_start_order && !job.start_order.empty()) {
    std::vector<int> place(job.lane.size());
    for (size_t i = 0; i < place.size(); ++i) {
      const int run = job.start_order[r][i];
      place[static_cast<size_t>(run)] = static_cast<int>(i);
      view.lane[i] = job.LaneOf(run);
    }
    for (JobPart& part : view.parts) part.run = place[static_cast<size_t>(part.run)];
    std::sort(view.parts.begin(), view.parts.end(), [](const JobPart& a, const JobPart& b) {
      return std::tie(a.run, a.bucket) < std::tie(b.run, b.bucket);
    });
  }
  const int first = job.first_channel.empty() ? 0 : job.first_channel[r];
  view.options.channels = view.parts.empty() ? 0 : RenumberChannels(first, &view.parts);
  return view;
}

}  // namespace sluice::deadlock
