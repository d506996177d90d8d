// The half that a rank gives to Connect, without its memory, and that memory beside it.
#ifndef SLUICE_SRC_SESSION_CONNECT_OWN_HALF_H_
#define SLUICE_SRC_SESSION_CONNECT_OWN_HALF_H_

#include "absl/status/statusor.h"
#include "plan/connect/half.h"
#include "session/base/memory_rules.h"
#include "sluice/connect.h"

namespace sluice {

// The half of `rank`, of `ranks`. InvalidArgument names the tensor: the half is wrong by itself
// (CheckHalf), the rank is not in a tensor's mesh or gives boxes of others, or a view does not fit.
absl::StatusOr<Half> MakeOwnHalf(const ConnectSpec& own, int rank, int ranks,
                                 const MemoryRules& rules);

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_CONNECT_OWN_HALF_H_
