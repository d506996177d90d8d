// Larger jobs in random orders of events: all of them finish. A failure names its seed.
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "job.h"
#include "job_world.h"
#include "plain_gate.h"

namespace sluice {
namespace {

struct Outcome {
  bool complete = false;
  std::string broken;
  int peak_slots = 0;
};

template <class Gate>
Outcome RunInRandomOrder(const Job& job, Asking asking, Feeding feeding, std::mt19937& random) {
  JobWorld<Gate> world(job, asking, feeding);
  // Some ranks start late: their events are left alone while there are others.
  const int late = static_cast<int>(random() % static_cast<unsigned>(job.ranks));
  bool started = false;
  while (world.broken().empty()) {
    std::vector<JobEvent> events = world.Events();
    if (events.empty()) break;
    if (!started) {
      std::erase_if(events, [late](const JobEvent& event) { return event.rank == late; });
      started = events.empty();
      if (started) events = world.Events();
    }
    world.Apply(events[random() % events.size()]);
  }
  return {world.Complete(), world.broken(), world.peak_slots()};
}

TEST(RandomJobs, AllFinishWithinTheirLimits) {
  int reached = 0;
  constexpr unsigned kJobs = 400;
  for (unsigned seed = 0; seed < kJobs; ++seed) {
    std::mt19937 random(seed);
    const Job job = RandomJob(random, 8);
    const Asking asking = seed % 2 == 0 ? Asking::kAtOnce : Asking::kAnyTime;
    const Outcome outcome = RunInRandomOrder<Engine>(job, asking, Feeding::kById, random);
    ASSERT_EQ(outcome.broken, "") << "seed " << seed << "\n" << job.ToString();
    ASSERT_TRUE(outcome.complete) << "seed " << seed << "\n" << job.ToString();
    if (outcome.peak_slots == job.options.slots) ++reached;
  }
  std::cout << kJobs << " jobs finished, " << reached << " reached the budget\n";
  EXPECT_GT(reached, 0);
}

TEST(RandomJobs, ManyGetStuckWithoutTheRule) {
  int stuck = 0;
  constexpr unsigned kJobs = 400;
  for (unsigned seed = 0; seed < kJobs; ++seed) {
    std::mt19937 random(seed);
    const Job job = RandomJob(random, 8);
    const Outcome outcome =
        RunInRandomOrder<PlainGate>(job, Asking::kAtOnce, Feeding::kSendsFirst, random);
    ASSERT_EQ(outcome.broken, "") << "seed " << seed << "\n" << job.ToString();
    if (!outcome.complete) ++stuck;
  }
  std::cout << stuck << " of " << kJobs << " jobs got stuck under a plain semaphore\n";
  EXPECT_GT(stuck, 0);
}

}  // namespace
}  // namespace sluice
