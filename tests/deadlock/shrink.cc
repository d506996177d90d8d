// Shrinking by attempts: each change is kept if some order of events still stalls.
#include "deadlock/shrink.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "deadlock/world.h"

namespace sluice::deadlock {
namespace {

constexpr uint64_t kOrders = 48;  // tried for each smaller job

// A smaller job, or nothing if the change does not apply.
using Change = std::function<std::optional<Job>(const Job&)>;

template <class T>
void EraseAt(std::vector<T>* items, size_t index) {
  items->erase(items->begin() + static_cast<std::ptrdiff_t>(index));
}

// Channels and lanes of a job whose buckets have changed.
Job Rebuilt(const Job& old) {
  const Job fresh = WithRuns(WithChannels(old.ranks, old.options, old.buckets), old.run, old.lane);
  Job job = old;
  job.options = fresh.options;
  job.channel = fresh.channel;
  return job;
}

Job WithoutBucket(Job job, size_t index) {
  EraseAt(&job.buckets, index);
  EraseAt(&job.channel, index);
  EraseAt(&job.run, index);
  EraseAt(&job.bytes, index);
  return Rebuilt(job);
}

std::optional<Job> WithoutMember(Job job, size_t bucket, size_t member) {
  if (job.buckets[bucket].size() <= 2) return std::nullopt;
  EraseAt(&job.buckets[bucket], member);
  return Rebuilt(job);
}

std::optional<Job> WithoutRank(Job job, int rank) {
  if (job.ranks <= 1) return std::nullopt;
  for (JobBucket& bucket : job.buckets) {
    for (JobMember& member : bucket) {
      if (member.rank == rank) return std::nullopt;
      if (member.rank > rank) --member.rank;
    }
  }
  const auto r = static_cast<size_t>(rank);
  const unsigned below = (1U << rank) - 1;
  job.late_ranks = (job.late_ranks & below) | (job.late_ranks >> 1 & ~below);
  EraseAt(&job.first_channel, r);
  EraseAt(&job.start_order, r);
  EraseAt(&job.device_slots, r);
  --job.ranks;
  return job;
}

// Joins a run with the one before it.
std::optional<Job> WithoutRun(Job job, int run) {
  if (run == 0 || run >= job.runs()) return std::nullopt;
  for (int& of_bucket : job.run) of_bucket -= of_bucket >= run ? 1 : 0;
  EraseAt(&job.lane, static_cast<size_t>(run));
  for (std::vector<int>& order : job.start_order) {
    std::erase(order, run);
    for (int& started : order) started -= started > run ? 1 : 0;
  }
  return Rebuilt(job);
}

std::optional<Job> WithOneLane(Job job) {
  if (job.options.lanes == 1) return std::nullopt;
  std::fill(job.lane.begin(), job.lane.end(), 0);
  return Rebuilt(job);
}

// Sets a member of the job to what is simplest.
template <class T>
Change Setting(T Job::*member, T simplest) {
  return [=](const Job& job) -> std::optional<Job> {
    if (job.*member == simplest) return std::nullopt;
    Job simpler = job;
    simpler.*member = simplest;
    return simpler;
  };
}

Change SettingOption(int EngineOptions::*option, int value) {
  return [=](const Job& job) -> std::optional<Job> {
    if (job.options.*option == value) return std::nullopt;
    Job simpler = job;
    simpler.options.*option = value;
    return simpler;
  };
}

// A setting of every rank, for one of them.
template <class T>
Change SettingOfRank(std::vector<T> Job::*member, size_t rank, T simplest) {
  return [=](const Job& job) -> std::optional<Job> {
    if ((job.*member)[rank] == simplest) return std::nullopt;
    Job simpler = job;
    (simpler.*member)[rank] = simplest;
    return simpler;
  };
}

// What could be smaller in the job, the largest changes first.
std::vector<Change> ChangesOf(const Job& job) {
  std::vector<Change> changes;
  for (int run = 1; run < job.runs(); ++run) {
    changes.emplace_back([=](const Job& old) { return WithoutRun(old, run); });
  }
  for (size_t i = job.buckets.size(); i-- > 0;) {
    changes.emplace_back([=](const Job& old) { return WithoutBucket(old, i); });
  }
  for (int rank = job.ranks; rank-- > 0;) {
    changes.emplace_back([=](const Job& old) { return WithoutRank(old, rank); });
  }
  changes.emplace_back([](const Job& old) { return WithOneLane(old); });
  changes.push_back(Setting(&Job::ordered_transport, false));
  changes.push_back(Setting(&Job::late_ranks, 0U));
  for (size_t i = 0; i < job.buckets.size(); ++i) {
    for (size_t member = job.buckets[i].size(); member-- > 0;) {
      changes.emplace_back([=](const Job& old) { return WithoutMember(old, i, member); });
    }
  }
  for (int slots = 1; slots < job.options.slots; ++slots) {
    changes.push_back(SettingOption(&EngineOptions::slots, slots));
  }
  changes.push_back(SettingOption(&EngineOptions::max_in_flight, 1));
  std::vector<int> in_order(job.lane.size());
  std::iota(in_order.begin(), in_order.end(), 0);
  for (size_t r = 0; r < static_cast<size_t>(job.ranks); ++r) {
    changes.push_back(SettingOfRank(&Job::device_slots, r, 0));
    changes.push_back(SettingOfRank(&Job::device_slots, r, 1));
    changes.push_back(SettingOfRank(&Job::first_channel, r, 0));
    changes.push_back(SettingOfRank(&Job::start_order, r, in_order));
  }
  return changes;
}

// Of the orders in which the job stalls the one with the fewest events.
std::optional<StalledJob> Stall(const Job& job, const Rules& rules) {
  std::optional<Random> best;
  int64_t fewest = 0;
  for (uint64_t i = 0; i < kOrders; ++i) {
    const Random order(i);
    const Outcome outcome = Play(job, rules, order);
    if (outcome.complete || (best && outcome.events >= fewest)) continue;
    best = order;
    fewest = outcome.events;
  }
  if (!best) return std::nullopt;
  return StalledJob{.job = job, .order = *best};
}

// Applies the first change that leaves a stalled job; false if there is none.
bool ShrinkOnce(StalledJob* stalled, const Rules& rules) {
  for (const Change& change : ChangesOf(stalled->job)) {
    const std::optional<Job> smaller = change(stalled->job);
    if (!smaller || smaller->buckets.empty() || SizeOf(*smaller) >= SizeOf(stalled->job)) continue;
    if (std::optional<StalledJob> found = Stall(*smaller, rules)) {
      *stalled = *std::move(found);
      return true;
    }
  }
  return false;
}

}  // namespace

int SizeOf(const Job& job) {
  int size = 100 * static_cast<int>(job.buckets.size()) + 20 * job.ranks + 20 * job.runs() +
             10 * job.options.lanes + 10 * job.options.slots + job.options.max_in_flight +
             (job.ordered_transport ? 10 : 0);
  for (const JobBucket& bucket : job.buckets) size += 10 * static_cast<int>(bucket.size());
  for (size_t r = 0; r < static_cast<size_t>(job.ranks); ++r) {
    size += job.device_slots[r] + (job.first_channel[r] == 0 ? 0 : 1);
    size += std::is_sorted(job.start_order[r].begin(), job.start_order[r].end()) ? 0 : 1;
    size += (job.late_ranks >> r & 1U) == 0 ? 0 : 1;
  }
  return size;
}

StalledJob Shrink(const StalledJob& stalled, const Rules& rules) {
  StalledJob smallest = stalled;
  while (ShrinkOnce(&smallest, rules)) continue;
  // Its own order may be longer than need be.
  if (const std::optional<StalledJob> found = Stall(smallest.job, rules)) smallest = *found;
  return smallest;
}

}  // namespace sluice::deadlock
