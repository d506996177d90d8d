// What all programs here end with: one table.
#ifndef SLUICE_BENCH_JOB_EXIT_CODES_H_
#define SLUICE_BENCH_JOB_EXIT_CODES_H_

#include <string>

#include "absl/status/status.h"

namespace sluice::bench {

inline constexpr int kGoodExit = 0;
inline constexpr int kFailedExit = 1;
inline constexpr int kBadUsageExit = 2;
inline constexpr int kCannotRunExit = 77;     // as ctest's and automake's tests have it
inline constexpr int kInterruptedExit = 130;  // as shells have it

// The table, as --help shows it.
inline std::string ExitCodesText() {
  return "Exit codes: 0 all is well; 1 wrong results, or a failure; 2 bad usage: flags, or what "
         "they\nname; 77 cannot run here: no GPU, or none that is built in; 130 interrupted";
}

// Of an error that came before anything was moved.
inline int ExitCodeOf(const absl::Status& status) {
  const bool usage = absl::IsInvalidArgument(status) || absl::IsNotFound(status);
  return usage ? kBadUsageExit : kFailedExit;
}

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_JOB_EXIT_CODES_H_
