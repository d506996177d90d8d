// Tells when this process stands still inside one call of MPI, which the library cannot end.
#ifndef SLUICE_MPI_TESTS_CALL_WATCH_H_
#define SLUICE_MPI_TESTS_CALL_WATCH_H_

#include <functional>

#include "absl/time/time.h"

namespace sluice::session_test {

// Starts a thread that calls `stuck` with the name of an MPI function, once one call of it has
// lasted for `limit`. `stuck` runs on that thread, and ends the process. The functions that the
// library calls while it makes progress are watched, on the one thread that calls MPI.
void WatchCalls(absl::Duration limit, std::function<void(const char* call)> stuck);

}  // namespace sluice::session_test

#endif  // SLUICE_MPI_TESTS_CALL_WATCH_H_
