// The flags of `sluice-bench sync`: their names are an interface.
#ifndef SLUICE_BENCH_SYNC_OPTIONS_H_
#define SLUICE_BENCH_SYNC_OPTIONS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "sluice/world.h"
#include "workload/model_file.h"

namespace CLI {
class App;
}

namespace sluice::bench {

struct SyncOptions {
  // Who this process is, and where all meet. What is empty or negative, the environment says.
  std::string role;
  std::string world;
  std::string token_file;
  int rank = -1;
  int size = 0;

  // What is synced.
  std::string model_file;
  std::string system_file;
  ModelCut cut;
  std::string tensors;  // N,ROWS,COLUMNS, in place of a model
  int64_t seed = 0;

  int64_t versions = 10;
  int at_least = 0;     // servers that an epoch takes; 0: one, and at the beginning all
  double pause_ms = 0;  // between versions
  bool progress_thread = false;
  double timeout_s = 30;
  double wait_s = 0;  // 0: for ever
  std::string json_file;

  absl::Duration wait() const {
    return wait_s > 0 ? absl::Seconds(wait_s) : absl::InfiniteDuration();
  }
  int servers_needed() const { return at_least > 0 ? at_least : 1; }
};

inline constexpr char kTrainer[] = "trainer";
inline constexpr char kServer[] = "server";

// Gives `app` the flags, which write to `options`; `options` must live as long as `app` is used.
void AddFlags(CLI::App* app, SyncOptions* options);

// InvalidArgument for flags that do not go together.
absl::Status CheckFlags(SyncOptions* options);

// The membership that the flags ask for, and the environment where they say nothing. Sets the
// process's own SLUICE_ variables to what the flags say, so call it while there is one thread.
absl::StatusOr<WorldOptions> WorldOptionsOf(const SyncOptions& options);

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_SYNC_OPTIONS_H_
