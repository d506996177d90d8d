// One rank's part of a load or a save, from its plan to its numbers. Waits for nobody.
#ifndef SLUICE_SRC_SESSION_CHECKPOINT_CHECKPOINT_RUN_H_
#define SLUICE_SRC_SESSION_CHECKPOINT_CHECKPOINT_RUN_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "plan/shard/checkpoint_plan.h"
#include "session/checkpoint/checkpoint_limits.h"
#include "session/checkpoint/checkpoint_save.h"
#include "session/checkpoint/checkpoint_work.h"
#include "session/shard/shard_runner.h"
#include "sluice/checkpoint.h"
#include "sluice/transport.h"
#include "storage/sink.h"
#include "storage/source.h"

namespace sluice {

struct CheckpointRunParts {
  CheckpointFlow flow = CheckpointFlow::kLoad;
  int rank = 0;
  std::vector<CheckpointPlace> places;   // of the tensors, in their order
  std::vector<std::string> files;        // for messages
  std::unique_ptr<Source> source;        // kLoad
  bool shares_mapping = false;           // kLoad: CheckpointWork::set_shares_mapping
  Sink* sink = nullptr;                  // kSave; must outlive the run
  std::unique_ptr<Transport> transport;  // null: one rank
  std::unique_ptr<Device> device;
};

class CheckpointRun {
 public:
  // Plans, and allocates staging. InvalidArgument if the budget is too small, ResourceExhausted if
  // there is no memory.
  static absl::StatusOr<std::unique_ptr<CheckpointRun>> Make(
      CheckpointRunParts parts, absl::Span<const CheckpointTensor> tensors,
      const CheckpointOptions& options);

  // Whether bytes of the source may stay there until they are copied.
  static bool MayLend(const Source& source, const Device& device);

  ShardRunner* runner() { return runner_.get(); }
  int ready_fd() const {
    return parts_.source == nullptr ? parts_.sink->ready_fd() : parts_.source->ready_fd();
  }

  // Ends all but the source's work. Takes the runner away, which nobody needs once it is done, and
  // gives the source away. After stats(). The source may be destroyed by any thread.
  std::unique_ptr<Source> EndReading();

  // The counts that are known here.
  CheckpointStats stats() const;

 private:
  CheckpointRun(CheckpointRunParts parts, const CheckpointOptions& options)
      : parts_(std::move(parts)), options_(options) {}
  std::vector<CheckpointPlanTensor> SortByFile(absl::Span<const CheckpointTensor> tensors);
  std::unique_ptr<CheckpointWork> MakeWork(int window);

  // Destroyed in reverse order: the runner before what it uses.
  CheckpointRunParts parts_;
  const CheckpointOptions options_;
  std::vector<CheckpointPlace> places_;  // in the order of the plan
  std::unique_ptr<CheckpointPlan> plan_;
  CheckpointLimits limits_;
  std::unique_ptr<CheckpointWork> work_;
  std::unique_ptr<ShardRunner> runner_;
};

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_CHECKPOINT_CHECKPOINT_RUN_H_
