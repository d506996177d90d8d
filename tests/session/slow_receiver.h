// What a receiver holds while others could send and it has asked for nothing more. The kernel
// counts: memory that a transport takes on its own account is in no counter of a session.
#ifndef SLUICE_TESTS_SESSION_SLOW_RECEIVER_H_
#define SLUICE_TESTS_SESSION_SLOW_RECEIVER_H_

#include <cstdint>

#include "session/world.h"

namespace sluice::session_test {

// What a process may grow by beside its budget: MPI's own buffers, which it has once, and the heap.
inline constexpr int64_t kOtherGrowthBytes = int64_t{6} << 20;

struct SlowReceiver {
  int64_t bucket_bytes = 32 << 10;
  int64_t budget_bytes = 64 << 10;
  int64_t total_bytes = 48 << 20;  // that it is to get in the end
  int64_t awaited_bytes = 0;       // polls until it has grown by so much, however long
};

// Rank 0 sends to rank 1, whose memory comes late: meanwhile rank 1 polls. What its process has
// grown by until then; on other ranks 0. Expects all bytes to be right afterwards.
int64_t GrowthBeforeMemoryComes(Rank& self, const SlowReceiver& receiver);

// All ranks share a stream; rank 1 takes an item, and holds it while it polls. As above.
int64_t GrowthWhileAnItemIsHeld(Rank& self, const SlowReceiver& receiver);

}  // namespace sluice::session_test

#endif  // SLUICE_TESTS_SESSION_SLOW_RECEIVER_H_
