// Work that each rank has of its own, and that all ranks end together. No rank waits for another
// one without hearing of it, and streams go on.
#ifndef SLUICE_SRC_SESSION_PEERS_TOGETHER_H_
#define SLUICE_SRC_SESSION_PEERS_TOGETHER_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "session/base/own_work.h"
#include "session/peers/peers.h"

namespace sluice {

// The result of one step of this rank's work.
struct TogetherStep {
  bool moved = false;
  bool done = false;
  bool waits = false;          // for the system, however long that takes
  int64_t due_ns = INT64_MAX;  // when there is something to do at the latest
};

// Calls `step` until it is done on all ranks. Collective. The first failure on any of them ends it
// on all. So does a rank's silence for `timeout`, which poisons. So does a `timeout` in which no
// rank moves; `describe` then says where this one stands.
absl::Status FinishTogether(Peers* peers, const char* call, absl::Duration timeout,
                            absl::FunctionRef<absl::StatusOr<TogetherStep>()> step,
                            absl::FunctionRef<ErrorText()> describe);

// Waits until the `own_work` of each rank has ended, on a thread of its own; null: this rank has
// none. Collective. However long it takes, it counts against nobody. The first failure on any rank
// is the outcome on all; then this returns once this rank's work has ended, too.
absl::Status WorkTogether(Peers* peers, const char* call, absl::Duration timeout,
                          OwnWorkFunction own_work);

// Waits until `work` has ended, on a thread of its own. No other rank knows of it.
void WorkAlone(Peers* peers, const std::function<void()>& work);

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_PEERS_TOGETHER_H_
