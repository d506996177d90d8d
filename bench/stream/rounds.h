// All modes in turns, as many rounds as asked for.
#ifndef SLUICE_BENCH_STREAM_ROUNDS_H_
#define SLUICE_BENCH_STREAM_ROUNDS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "job/ranks.h"
#include "job/trace_file.h"
#include "memory/mapped_memory.h"
#include "report/progress_bar.h"
#include "sluice/session.h"
#include "sluice/stream.h"
#include "stream/consumer.h"
#include "stream/contents.h"
#include "stream/item_check.h"
#include "stream/options.h"
#include "stream/outcome.h"

namespace sluice::bench {

// The kernel's word on what this process and the calling thread have used.
struct Usage {
  double cpu_s = 0;          // of all threads of the process, in the kernel too
  int64_t major_faults = 0;  // of the calling thread: pages that it waited for storage for
};

// One rank's end. All calls are collective.
class Rounds {
 public:
  // All must outlive this object.
  Rounds(const StreamBenchOptions* options, const Contents* contents, Ranks* ranks,
         Session* session);

  // Runs everything; `results` gets a median for each mode, as far as there were rounds.
  // The first failure ends it: one status for all ranks. `*lost`: the ranks could not be brought
  // together any more, and it is this rank's alone. `so_far` gets the medians after each turn.
  absl::Status Run(absl::FunctionRef<void(const std::vector<Result>&)> so_far,
                   std::vector<Result>* results, bool* lost);

  // Writes the trace; a line that says so on rank 0.
  absl::StatusOr<std::string> WriteTrace(TraceFileFacts* facts);

 private:
  std::vector<Result> Medians() const;
  // One mode on all ranks: one status for all of them.
  absl::Status RunMode(size_t mode, int round);
  absl::Status RunHere(const Mode& mode, int round, RankOutcome* outcome);
  absl::Status Deliver(const Mode& mode, int round, const StreamPlan& plan, const Usage& begin,
                       Consumer* consumer, RankOutcome* outcome);
  // The memory that the negative control asks for.
  MappedMemory Grow() const;
  // Waits for all ranks, and drives the session meanwhile.
  absl::Status Meet();
  absl::Status Progress();

  const StreamBenchOptions& options_;
  const Contents& contents_;
  Ranks& ranks_;
  Session& session_;
  const StreamOptions stream_;
  const ItemCheck check_;
  ProgressBar bar_;
  std::vector<std::vector<Result>> rounds_;  // of each mode
  bool lost_ = false;
};

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_STREAM_ROUNDS_H_
