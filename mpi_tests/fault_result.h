// What a rank leaves behind for fault_test.py, in a job of which one rank dies or stops.
#ifndef SLUICE_MPI_TESTS_FAULT_RESULT_H_
#define SLUICE_MPI_TESTS_FAULT_RESULT_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace sluice::session_test {

// Of sessions and streams. A rank that is killed is noticed long before. Of one that is stopped
// nothing but its silence tells: far longer than a rank says nothing beside a build.
inline absl::Duration TimeoutOf(bool stop) { return absl::Seconds(stop ? 15 : 120); }

struct FaultResult {
  absl::Status status;  // what ended the rank's work
  absl::Status closed;
  // On MonotonicNs's clock: after the victim went, at the error, and after closing.
  int64_t start_ns = 0;
  int64_t error_ns = 0;
  int64_t closed_ns = 0;
};

// Writes FOLDER/rank-N.json, then tells the test through its pipe that the file is there.
void WriteResult(const std::string& folder, int rank, const FaultResult& result);

// Starts a thread that calls `stuck` with the name of an MPI function, once one call of it has
// lasted for `limit`. `stuck` runs on that thread, and ends the process. The functions that the
// library calls while it makes progress are watched, on the one thread that calls MPI.
void WatchCalls(absl::Duration limit, std::function<void(const char* call)> stuck);

// Watches this process's calls of MPI. Where one lasts for 45 s, says so in FOLDER/rank-N.json
// instead of a result, and ends the process: nothing else could.
void WatchCallsOf(const std::string& folder, int rank);

// The victim's end: its process is killed or stopped. Where it is stopped it says so first, so that
// the test knows whom to wake.
void Vanish(const std::string& folder, int rank, bool stop);

}  // namespace sluice::session_test

#endif  // SLUICE_MPI_TESTS_FAULT_RESULT_H_
