// A runner of transfers in a script, in the place that a session gives it.
//
//   `runner rank=0 nodes=0,0 slots=1 in_flight=2 bucket=64`
//                                             Also what its transport does: staged= order= groups=
//                                             folds= rows= (yes or no).
//   `tensor t0 shape=4x16 type=f32 to=f32 src=0:R dst=0,1:S(0) window=0`
//                                             One tensor of a plan.
//   `plan class=0 room=no`                    The tensors since the last one. Tells the buckets of
//                                             this rank; with room=yes also what room they take.
//   `start of=0 late=no events=no stream=no`  The next run, of this plan.
//   `supply 1 t0`                             Memory that run 1 was late with.
//   `freeze 1` / `cut 1 bucket=2`             The halves of a cancel. The last bucket is by the
//                                             plan, or -1.
//   `pass fence 1`                            The caller's stream has come past it.
//   `stall` / `counters` / `oldest` / `report 1 bucket=2`
//                                             What the runner says.
#ifndef SLUICE_TESTS_SESSION_SCRIPT_RUN_RIG_H_
#define SLUICE_TESTS_SESSION_SCRIPT_RUN_RIG_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "session/script/script_rig.h"
#include "session/transfer/compiled_transfer.h"
#include "session/transfer/runner.h"
#include "session/transfer/transfer_run.h"
#include "sluice/transfer.h"

namespace sluice::session_test {

class RunRig final : public ScriptRig {
 public:
  // From the words of "runner".
  explicit RunRig(deadlock::ScriptWords& words);

 private:
  // A transfer, and this rank's memory for it.
  struct Planned {
    std::unique_ptr<CompiledTransfer> transfer;
    std::vector<TensorView> src;
    std::vector<TensorView> dst;
  };

  bool ObeyOwn(deadlock::ScriptWords& words) override;
  void Drive() override;
  void Poison(const absl::Status& status) override;
  void End() override;

  void AddTensor(deadlock::ScriptWords& words);
  void Plan(deadlock::ScriptWords& words);
  void TellPlan(const CompiledTransfer& transfer);
  void Start(deadlock::ScriptWords& words);
  void Supply(TransferRun* run, absl::string_view name);
  void Tell(deadlock::ScriptWords& words);
  void TellOldest();
  void TellReport(const TransferRun& run, const BucketId& id);
  TensorView Allocate(const std::string& name, const Layout& layout,
                      const std::vector<int64_t>& whole, DType dtype);
  TransferRun* FindRun(const deadlock::ScriptWords& words);
  BucketId IdOf(const TransferRun& run, int bucket) const;
  bool EndRuns();
  void TellEvents();

  int rank_ = 0;
  std::vector<int> nodes_;
  PlanOptions options_;
  TransferSpec spec_;  // to be planned
  size_t slot_bytes_ = 64;
  std::list<std::vector<std::byte>> memory_;
  std::vector<Planned> plans_;
  std::deque<RunEvent> events_;
  std::vector<std::unique_ptr<TransferRun>> runs_;  // in flight
  int64_t last_run_ = 0;
  absl::Status poison_;
  bool settled_ = false;
  std::unique_ptr<Runner> runner_;
};

}  // namespace sluice::session_test

#endif  // SLUICE_TESTS_SESSION_SCRIPT_RUN_RIG_H_
