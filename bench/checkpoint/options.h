// The flags of `sluice-bench checkpoint`: their names are an interface.
#ifndef SLUICE_BENCH_CHECKPOINT_OPTIONS_H_
#define SLUICE_BENCH_CHECKPOINT_OPTIONS_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "job/flags.h"
#include "sluice/checkpoint.h"
#include "sluice/transfer.h"
#include "workload/model_file.h"

namespace CLI {
class App;
}

namespace sluice::bench {

struct CheckpointBenchOptions {
  std::string path;  // a directory, or an address that LoadCheckpoint takes
  bool make = false;
  std::string layout;       // empty: dimension 0 over all ranks
  std::string save_layout;  // empty: as layout

  // What to write. Without them, what the checkpoint has is loaded.
  std::string shape;
  std::string dtype = "f32";
  int tensors = 1;
  std::string model_file;
  std::string system_file;
  ModelCut cut;

  std::string budget_bytes = "256M";
  int64_t slots = 0;
  std::string piece_bytes = "8M";
  std::string shard_bytes = "5G";
  std::string ca_file;
  int iterations = 1;
  int warmup = 0;  // loads before them
  std::vector<std::string> baselines;
  bool cold = false;
  bool new_memory = false;
  std::optional<Check> check;  // all with make, otherwise none
  int64_t seed = 0;
  double timeout_s = 60;
  std::string fabric = "auto";  // as AddFabric
  bool progress_thread = false;
  std::string json_file;

  // A checkpoint of others holds no values that could be known.
  Check check_or_default() const { return check.value_or(make ? Check::kAll : Check::kNone); }
  absl::Duration timeout() const { return absl::Seconds(timeout_s); }
  // Whether the layouts come from a system file.
  bool has_system() const { return !system_file.empty(); }
};

// Gives `app` the flags, which write to `options`; `options` must live as long as `app` is used.
void AddFlags(CLI::App* app, CheckpointBenchOptions* options);

// What the calls take. InvalidArgument names the flag.
absl::StatusOr<CheckpointOptions> CallOptionsOf(const CheckpointBenchOptions& options);

// The address to load from, and the directory to write to.
std::string UriOf(const CheckpointBenchOptions& options);
absl::StatusOr<std::string> DirectoryOf(const CheckpointBenchOptions& options);

// InvalidArgument for flags that do not go together.
absl::Status CheckFlags(const CheckpointBenchOptions& options);

// What --layout stands for where it is not given.
std::string DefaultLayoutText(int ranks);

// Each tensor with the layout to save from (src) and to load into (dst). They come from the flags
// or from a model. Where neither is given, they come from the headers of the checkpoint.
absl::StatusOr<TransferSpec> TensorsOf(const CheckpointBenchOptions& options);

// All flags that must be equal on all ranks, by their names in results.
std::vector<std::pair<std::string, nlohmann::ordered_json>> Config(
    const CheckpointBenchOptions& options);
// The same as numbers, to be compared across ranks; texts as hashes.
std::vector<std::pair<std::string, int64_t>> CheckpointKnobs(const CheckpointBenchOptions& options);

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_CHECKPOINT_OPTIONS_H_
