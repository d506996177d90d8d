// The commands of sluice-bench. Each returns what main returns.
#ifndef SLUICE_BENCH_COMMANDS_H_
#define SLUICE_BENCH_COMMANDS_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "job/job.h"

namespace sluice::bench {

struct CheckpointBenchOptions;
struct DoctorOptions;
struct Options;
struct ReportOptions;
struct ShardsOptions;
struct StreamBenchOptions;
struct SyncOptions;

// ---- Collective over all ranks of `job`, which may be an error. `flags` says whether this rank's
// could be read: if not, the others learn of that. Each leaves the job. After an error that leaves
// ranks apart it does not return, but ends the job.

using StartedJob = absl::StatusOr<std::unique_ptr<Job>>;
int RunCheckpoint(StartedJob job, const CheckpointBenchOptions& options, const absl::Status& flags);
int RunDoctor(StartedJob job, const DoctorOptions& options, const absl::Status& flags);
int RunReshard(StartedJob job, const Options& options, const absl::Status& flags);
int RunStream(StartedJob job, const StreamBenchOptions& options, const absl::Status& flags);

// ---- Of one process.

// --plan-only: plans for all ranks of each case, as many as the largest rank in it asks for,
// --ranks-per-node of them on a node (0: all). MPI need not be initialised.
int RunPlanOnly(const Options& options, const absl::Status& flags);
// Becomes the program that makes a page; returns only if that cannot be started.
int ShowReport(const ReportOptions& options, const absl::Status& flags);
int RunShards(const ShardsOptions& options);
// Takes part in a weight sync between jobs that were started apart.
int RunSync(SyncOptions* options, const absl::Status& flags);

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_COMMANDS_H_
