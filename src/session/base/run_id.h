// The number of a run within its session.
#ifndef SLUICE_SRC_SESSION_BASE_RUN_ID_H_
#define SLUICE_SRC_SESSION_BASE_RUN_ID_H_

#include <cstdint>

namespace sluice {

// From 1 on, in the order of Session::Start, which is the same on all ranks.
using RunId = int64_t;

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_BASE_RUN_ID_H_
