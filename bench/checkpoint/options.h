// The flags of `sluice-bench checkpoint`: their names are an interface.
#ifndef SLUICE_BENCH_CHECKPOINT_OPTIONS_H_
#define SLUICE_BENCH_CHECKPOINT_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "job/flag_list.h"
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

  CheckpointOptions call;  // what the calls take
  int iterations = 1;
  int warmup = 0;  // loads before them
  std::vector<std::string> baselines;
  bool cold = false;
  bool new_memory = false;
  std::optional<Check> check;  // all with make, otherwise none
  int64_t seed = 0;
  std::string fabric = "auto";  // as AddFabric
  bool progress_thread = false;
  std::string json_file;

  // A checkpoint of others holds no values that could be known.
  Check check_or_default() const { return check.value_or(make ? Check::kAll : Check::kNone); }
  absl::Duration timeout() const { return call.timeout; }
  // Whether the layouts come from a system file.
  bool has_system() const { return !system_file.empty(); }
};

// The flags that write to `options`, but for --check and --fabric.
FlagGroups CheckpointFlags(CheckpointBenchOptions* options);

// Gives `app` the flags, which write to `options`; `options` must live as long as `app` is used.
void AddFlags(CLI::App* app, CheckpointBenchOptions* options);

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

// What the flags come to, by their names in results. It must be equal on all ranks.
FlagConfig Config(const CheckpointBenchOptions& options);

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_CHECKPOINT_OPTIONS_H_
