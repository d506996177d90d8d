// Larger jobs in random orders of events: all of them finish. A failure names its seed.
#include <iostream>
#include <vector>

#include "deadlock/job.h"
#include "deadlock/random.h"
#include "deadlock/random_job.h"
#include "gtest/gtest.h"
#include "job_world.h"

namespace sluice::deadlock {
namespace {

JobWorld<Engine> RunInRandomOrder(const Job& job, Asking asking, Random& random) {
  JobWorld<Engine> world(job, asking);
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
  return world;
}

TEST(RandomJobs, AllFinishWithinTheirLimits) {
  int reached = 0;
  constexpr unsigned kJobs = 400;
  for (unsigned seed = 0; seed < kJobs; ++seed) {
    Random random(seed);
    const Job job = RandomJob(random, 8);
    const Asking asking = seed % 2 == 0 ? Asking::kAtOnce : Asking::kAnyTime;
    const JobWorld<Engine> world = RunInRandomOrder(job, asking, random);
    ASSERT_EQ(world.broken(), "") << "seed " << seed << "\n" << job.ToString();
    ASSERT_TRUE(world.Complete()) << "seed " << seed << "\n" << job.ToString();
    if (world.peak_slots() == job.options.slots) ++reached;
  }
  std::cout << kJobs << " jobs finished, " << reached << " reached the budget\n";
  EXPECT_GT(reached, 0);
}

}  // namespace
}  // namespace sluice::deadlock
