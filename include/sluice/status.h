// Errors of a call: handed on, or the end of the program.
//
//   SLUICE_ASSIGN_OR_RETURN(auto session, sluice::OpenSession());  // in a function of a Status
//   auto session = sluice::OrDie(sluice::OpenSession());           // in main
#ifndef SLUICE_STATUS_H_
#define SLUICE_STATUS_H_

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Returns the status from the function unless the status is OK.
#define SLUICE_RETURN_IF_ERROR(...)                                      \
  do {                                                                   \
    if (absl::Status sluice_error = (__VA_ARGS__); !sluice_error.ok()) { \
      return sluice_error;                                               \
    }                                                                    \
  } while (false)

// Assigns the value of a StatusOr to `target`, which may be a declaration, or returns the error:
// SLUICE_ASSIGN_OR_RETURN(const int count, Count()).
#define SLUICE_ASSIGN_OR_RETURN(target, ...) SLUICE_ASSIGN_AT_LINE(__LINE__, target, __VA_ARGS__)
#define SLUICE_ASSIGN_AT_LINE(line, target, ...) SLUICE_ASSIGN_BY_WAY_OF(line, target, __VA_ARGS__)
#define SLUICE_ASSIGN_BY_WAY_OF(line, target, ...)   \
  auto sluice_result_##line = (__VA_ARGS__);         \
  if (!sluice_result_##line.ok()) {                  \
    return std::move(sluice_result_##line).status(); \
  }                                                  \
  target = *std::move(sluice_result_##line)  // NOLINT(bugprone-macro-parentheses)

namespace sluice {

// Prints an error to stderr and ends the process with exit code 1 at once, without destructors.
// Launchers then end the other ranks, and ranks of a world hear that this one is lost.
inline void OrDie(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::fflush(nullptr);
  std::_Exit(1);
}

// The value of `result`, or such an end.
template <typename T>
T OrDie(absl::StatusOr<T> result) {
  OrDie(result.status());
  return *std::move(result);
}

}  // namespace sluice

#endif  // SLUICE_STATUS_H_
