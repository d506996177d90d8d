// Runs a job in simulated time: one engine per rank, as in a real job, and models of everything
// that takes time.
//
// A message moves from when both its ranks are ready for it: after the model's latency, at what the
// network gives it. A rank makes one copy at a time, in the order in which they came up. Engines,
// and the moves of engine/move.h, decide everything else; deciding takes no time.
#ifndef SLUICE_SRC_SIM_SIMULATION_H_
#define SLUICE_SRC_SIM_SIMULATION_H_

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "sim/job_plans.h"
#include "sim/network_model.h"

namespace sluice::sim {

struct SimulationOptions {
  int64_t budget_buckets = 0;  // per rank; 0: no limit but that of the channels
  int max_in_flight = 2;
  // Buckets that an engine knows ahead, at most. Real sessions have 4096 (or twice the budget).
  int look_ahead = 4096;
  NetworkModel network;
  // Ranks start at random times up to `start_skew` seconds, which follow from `seed`.
  uint64_t seed = 0;
  double start_skew = 0;
};

// The reason why a rank's next bucket waited, after everything that could begin had begun.
enum class WaitCause : uint8_t { kNothing, kChannel, kBudget };
inline constexpr int kWaitCauses = 3;
// The waits and acts in which admitted buckets spend their time.
enum class HeldCause : uint8_t {
  kCopyQueue,  // for earlier copies of the rank to end
  kCopy,
  kPartner,  // for the other side of a message to be ready
  kWire,
};
inline constexpr int kHeldCauses = 4;

struct RankOutcome {
  int32_t peak_buckets = 0;
  int32_t peak_operations = 0;  // messages under way, or waiting for their other side
  int64_t peak_bytes = 0;       // of staging
  int64_t channels = 0;
  TimePs end = 0;
};

struct SimulationOutcome {
  bool stopped = false;  // by Progress: everything below is of what had happened until then
  int64_t unfinished_ranks = 0;
  bool stalled() const { return !stopped && unfinished_ranks > 0; }
  std::string stall;  // of the first unfinished ranks, if stalled

  TimePs makespan = 0;
  TimePs link_bound = 0;       // how long the busiest port takes for all its bytes
  int64_t finished_parts = 0;  // one for each member of each bucket
  int64_t events = 0;
  std::vector<RankOutcome> ranks;
  std::array<TimePs, kWaitCauses> waits{};  // sums over ranks
  std::array<TimePs, kHeldCauses> held{};   // sums over members of buckets
};

// To be called now and then: parts finished so far, of how many. False stops the simulation.
using SimulationProgress = std::function<bool(int64_t finished, int64_t parts)>;

// `options.network` must be valid. Internal if what arrived at a rank is not what its layouts say
// that it needs. A stall is an outcome, not an error.
absl::StatusOr<SimulationOutcome> Simulate(const JobPlans& plans, const SimulationOptions& options,
                                           const SimulationProgress& progress = {});

}  // namespace sluice::sim

#endif  // SLUICE_SRC_SIM_SIMULATION_H_
