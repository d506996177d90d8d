// The flags that `sluice-sim peak` and `sluice-sim scale` share: their names are an interface.
#ifndef SLUICE_TOOLS_SIMULATE_OPTIONS_H_
#define SLUICE_TOOLS_SIMULATE_OPTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "sim/network_model.h"

namespace CLI {
class App;
}

namespace sluice::bench {

struct SimOptions {
  absl::Status flags;  // why they could not be parsed
  sim::NetworkModel network;
  std::vector<int64_t> budgets;  // buckets per rank; 0: no limit
  int64_t bucket_bytes = 0;
  int max_in_flight = 2;
  int look_ahead = 4096;
  uint64_t seed = 0;
  double start_skew_us = 0;
  std::string plan = "relay";  // or naive
  bool no_coalesce = false;    // each chunk is a bucket of its own
  std::string json_file;
  std::string csv_file;
  bool costs = false;
  bool progress = false;

  // As they were typed.
  std::string network_name = "ports";
  std::string budgets_text;
  std::string bucket_bytes_text = "8M";
  // Parameters of the network that were given; negative where not.
  double port_rate_gb = -1;
  double latency_us = -1;
  int ranks_per_node = -1;
  int nics_per_node = -1;
  double nic_rate_gb = -1;
  double nic_latency_us = -1;
  double copy_rate_gb = -1;
  double copy_latency_us = -1;
  bool copies_block = false;
  bool folds = false;
};

// Gives `app` the flags, which write to `options`; `options` must live as long as `app` is used.
// `budgets`: the list that --budget-buckets has if it is not given.
void AddSimFlags(CLI::App* app, const std::string& budgets, SimOptions* options);

// To be called after parsing. InvalidArgument names the flag; Unavailable a file that cannot be
// written.
absl::Status ParseSimTexts(SimOptions* options);

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_SIMULATE_OPTIONS_H_
