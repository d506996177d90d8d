// One rank's part of a load or a save in a script, once its catalog is known.
//
//   `checkpoint rank=0 flow=load piece=64 budget=65536 slots=0 attempts=4 alignment=1 files=a.st`
//            The machine.
//   `tensor a shape=16 type=f32 file_type=f32 layout=0,1:S(0) file=0 begin=8`
//            One tensor of its catalog.
//   `go`     Plans, and begins.
//   `stats`  What has been done.
//
// What all runners of shards have is in shard_rig.h. A save must have no file rank here.
#ifndef SLUICE_TESTS_SESSION_SCRIPT_CHECKPOINT_RIG_H_
#define SLUICE_TESTS_SESSION_SCRIPT_CHECKPOINT_RIG_H_

#include <list>
#include <memory>
#include <string>
#include <vector>

#include "session/checkpoint/checkpoint_run.h"
#include "session/script/shard_rig.h"

namespace sluice::session_test {

class CheckpointRig final : public ShardRunnerRig {
 public:
  // From the words of "checkpoint".
  explicit CheckpointRig(deadlock::ScriptWords& words);

 private:
  bool ObeyOwn(deadlock::ScriptWords& words) override;
  void Drive() override;
  void End() override;
  ShardRunner* runner() override { return run_->runner(); }
  void AddTensor(deadlock::ScriptWords& words);
  void Go();
  void TellStats();

  CheckpointRunParts parts_;
  CheckpointOptions options_;
  std::vector<CheckpointTensor> tensors_;
  std::list<std::vector<std::byte>> memory_;
  std::unique_ptr<CheckpointRun> run_;
};

}  // namespace sluice::session_test

#endif  // SLUICE_TESTS_SESSION_SCRIPT_CHECKPOINT_RIG_H_
