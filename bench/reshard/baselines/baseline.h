// Other ways to carry out a redistribution, to compare with: what one would write with MPI alone.
//
// They plan from OwnedRanges and share no code with the library's planner.
#ifndef SLUICE_BENCH_RESHARD_BASELINES_BASELINE_H_
#define SLUICE_BENCH_RESHARD_BASELINES_BASELINE_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "sluice/transfer.h"

namespace sluice::bench {

class Wire;  // reshard/baselines/wire.h

// What to carry out. All of it must outlive the baseline; views are dense.
struct BaselineJob {
  const TransferSpec* spec;  // one that Session::Compile accepts
  absl::Span<const TensorView> src;
  absl::Span<const TensorView> dst;
  int rank;
  Wire* wire;
};

class Baseline {
 public:
  virtual ~Baseline() = default;

  // Collective. Does all that can be done beforehand: planning, buffers, types, communicators. May
  // fill the destinations.
  // Unimplemented says why this case cannot be carried out in this way.
  virtual absl::Status Plan(const BaselineJob& job) = 0;

  // Collective. Fills the destinations once, between two barriers of the caller: ranks of a node
  // may write to one another's. After an error nothing more can be run.
  virtual absl::Status Run() = 0;
};

// Each chunk alone, one at a time over the whole job.
std::unique_ptr<Baseline> MakeSerialBaseline();
// Every chunk a message, all of them posted at once.
std::unique_ptr<Baseline> MakeIsendBaseline();
// The chunks for a peer joined in one message or a few, targets in rotated order, messages unpacked
// as they arrive.
std::unique_ptr<Baseline> MakeIsendPackedBaseline();
// One MPI_Alltoallw with subarray types. Not for Partial sources, casts, and regions that are not
// boxes.
std::unique_ptr<Baseline> MakeAlltoallwBaseline();
// Each tensor gathered whole on the first source rank, broadcast to the targets, and cut there.
std::unique_ptr<Baseline> MakeGatherBroadcastBaseline();
// MPI's own collective, where the layouts are one's (workload/collectives.h) and parts are even.
std::unique_ptr<Baseline> MakeMpiCollectiveBaseline();
// Not a redistribution: what each rank's targets are to hold, copied there by memcpy from a copy of
// its own. "memcpy" is its old name.
std::unique_ptr<Baseline> MakeMemcpyOwnBaseline();
// Not a redistribution: the bound on everything that writes each byte of the targets once. All
// ranks of a node write together, with streaming stores, in the memory that the targets are in.
// Where that is private memory, a rank reaches its own targets only: the work is then spread over
// the ranks that have targets.
std::unique_ptr<Baseline> MakeBoundBaseline();

// The names, in the order in which they are documented; also where none can be made.
inline std::vector<std::string> BaselineNames() {
  return {"serial",         "isend",      "isend-packed", "alltoallw", "gather-broadcast",
          "mpi-collective", "memcpy-own", "bound",        "memcpy"};
}

// `name`: one of BaselineNames; null otherwise.
std::unique_ptr<Baseline> MakeBaseline(absl::string_view name);

// Collective: fills the targets by messages.
absl::Status FillOnce(const BaselineJob& job);

// Makes the baselines of a run, and has the messages that they share.
class BaselineMaker {
 public:
  virtual ~BaselineMaker() = default;
  virtual std::unique_ptr<Baseline> Make(absl::string_view name) = 0;
  // As Wire::Arm.
  virtual void Arm(absl::Duration patience, std::function<absl::Status()> progress) = 0;
  virtual Wire* wire() = 0;
};

// Collective over MPI_COMM_WORLD. Unimplemented in programs without MPI.
absl::StatusOr<std::unique_ptr<BaselineMaker>> MakeBaselineMaker(absl::Duration timeout);

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_RESHARD_BASELINES_BASELINE_H_
