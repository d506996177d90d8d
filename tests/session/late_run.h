// A run with events, whose destinations get memory at different times and lose it as soon as their
// tensor is done.
#ifndef SLUICE_TESTS_SESSION_LATE_RUN_H_
#define SLUICE_TESTS_SESSION_LATE_RUN_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "session/specs.h"
#include "session/tensor_memory.h"
#include "session/world.h"
#include "sluice/session.h"

namespace sluice::session_test {

// When a destination gets its memory.
enum class Supplied {
  kAtStart,
  kEarly,     // right after Start
  kAsked,     // when NeedsMemory says so
  kHesitant,  // some polls after that
  kNever      // of a run that is cancelled
};

class LateRun {
 public:
  // Starts a run of `transfer` with the values of `round`. `when`: one for each tensor; those that
  // have no element here need nothing.
  LateRun(Session* session, Transfer* transfer, uint64_t round, std::vector<Supplied> when);

  Run run() const { return run_; }

  // To be told that this rank has cancelled the run: from then on memory may be refused.
  void Cancelled() { cancelled_ = true; }

  // To be told of each event of this run. Verifies what is done, and frees its memory.
  void Take(const Event& event);
  // Supplies what was asked for and is due.
  void Supply();

  // Expects each tensor to have been reported done, once.
  void ExpectAllDone() const;
  bool failed() const { return failed_; }
  const absl::Status& failure() const { return failure_; }

 private:
  struct Tensor {
    std::unique_ptr<TensorMemory> src;
    std::unique_ptr<TensorMemory> dst;  // null: none yet, or not any more
    size_t bytes = 0;                   // of dst
    Supplied when = Supplied::kAtStart;
    int asked = 0;
    int done = 0;
    int patience = -1;  // calls of Supply until it comes; -1: not asked for
  };
  std::unique_ptr<TensorMemory> MakeDst(size_t t) const;
  void SupplyOne(size_t t);
  void TakeNeed(size_t t);
  void TakeDone(size_t t);
  bool IsLate(const Tensor& tensor) const {
    return tensor.bytes > 0 && tensor.when != Supplied::kAtStart;
  }

  Session* const session_;
  const TransferSpec& spec_;
  const uint64_t round_;
  Run run_;
  std::vector<Tensor> tensors_;
  bool cancelled_ = false;
  bool failed_ = false;
  absl::Status failure_;
};

// Polls until all runs are done or failed here, and their events taken.
void Complete(Session* session, const std::vector<LateRun*>& runs);

// Three times late runs of all transfers of `job` at once, beside a normal one; each rank has
// memory at times of its own.
void RunLateJob(Rank& self, const RandomJob& job, uint64_t seed);

// Runs that get their memory late, or never, and are cancelled at random.

// One rank's part. All ranks start and cancel the same runs in the same order. Each supplies memory
// when its own dice say so, stays away now and then, and verifies each tensor when it is reported.
// Then all transfers of `job` run once more. Returns how many runs were cut short here.
int RunCancelled(Rank& self, const RandomJob& job, uint64_t seed);

}  // namespace sluice::session_test

#endif  // SLUICE_TESTS_SESSION_LATE_RUN_H_
