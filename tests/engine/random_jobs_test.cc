// Larger jobs in random orders of events: all of them finish. A failure names its seed.
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <vector>

#include "deadlock/job.h"
#include "deadlock/plain_gate.h"
#include "deadlock/random.h"
#include "deadlock/random_job.h"
#include "gtest/gtest.h"
#include "job_world.h"

namespace sluice::deadlock {
namespace {

struct Ending {
  bool complete = false;
  std::string broken;
  int peak_slots = 0;
};

template <class Gate>
Ending RunInRandomOrder(const Job& job, Asking asking, Feeding feeding, Random& random) {
  JobWorld<Gate> world(job, asking, feeding);
  // Some ranks start late: their events are left alone while there are others.
  const int late = random.Between(0, job.ranks - 1);
  bool started = false;
  while (world.broken().empty()) {
    std::vector<JobEvent> events = world.Events();
    if (events.empty()) break;
    if (!started) {
      std::erase_if(events, [late](const JobEvent& event) { return event.rank == late; });
      started = events.empty();
      if (started) events = world.Events();
    }
    world.Apply(events[random.Below(events.size())]);
  }
  return {world.Complete(), world.broken(), world.peak_slots()};
}

TEST(RandomJobs, AllFinishWithinTheirLimits) {
  int reached = 0;
  constexpr unsigned kJobs = 400;
  for (unsigned seed = 0; seed < kJobs; ++seed) {
    Random random(seed);
    const Job job = RandomJob(random, 8);
    const Asking asking = seed % 2 == 0 ? Asking::kAtOnce : Asking::kAnyTime;
    const Ending outcome = RunInRandomOrder<Engine>(job, asking, Feeding::kById, random);
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
    Random random(seed);
    const Job job = RandomJob(random, 8);
    const Ending outcome =
        RunInRandomOrder<PlainGate>(job, Asking::kAtOnce, Feeding::kSendsFirst, random);
    ASSERT_EQ(outcome.broken, "") << "seed " << seed << "\n" << job.ToString();
    if (!outcome.complete) ++stuck;
  }
  std::cout << stuck << " of " << kJobs << " jobs got stuck under a plain semaphore\n";
  EXPECT_GT(stuck, 0);
}

}  // namespace
}  // namespace sluice::deadlock
