// The frame of every call of the C API: nothing is thrown, and errors become a status and a text.
#ifndef SLUICE_SRC_C_CALL_H_
#define SLUICE_SRC_C_CALL_H_

#include <type_traits>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "sluice/sluice.h"

namespace sluice::c {

// The number of an error, whose text becomes this thread's last one. 0 of OK.
sluice_status Report(const char* call, const absl::Status& status) noexcept;

// Makes a status of what has been thrown, in a catch block.
absl::Status Caught() noexcept;

// Runs a part of a call, and makes an error of what it throws: a body that returns an absl::Status
// or an absl::StatusOr.
template <typename Body>
auto Try(Body&& body) -> decltype(body()) {
  try {
    return body();
  } catch (...) {
    return Caught();
  }
}

// Runs the body of a call. It returns an absl::Status; or an absl::StatusOr<sluice_status>, where
// there are statuses that are no errors.
template <typename Body>
sluice_status Guard(const char* call, Body&& body) noexcept {
  const auto result = Try(body);
  if constexpr (std::is_same_v<decltype(body()), absl::Status>) {
    return Report(call, result);
  } else {
    return result.ok() ? *result : Report(call, result.status());
  }
}

// Runs a callback of the caller's, which returns a sluice_status. `what` says which, for the text
// of its errors. A callback that throws gives an error, too.
template <typename Callback>
absl::Status CallBack(absl::string_view what, Callback&& callback);

// An error for what should be a status.
absl::Status StatusOfCallback(absl::string_view what, sluice_status status);
// Forgets what an earlier callback of this thread has said.
void ForgetCallbackText() noexcept;

template <typename Callback>
absl::Status CallBack(absl::string_view what, Callback&& callback) {
  ForgetCallbackText();
  return Try([&] { return StatusOfCallback(what, callback()); });
}

// InvalidArgument: a pointer that may not be null is.
absl::Status IsNull(absl::string_view what);

// NULL or 0, for a call that may fail: a handle or a number that it gives.
template <typename Result>
void Clear(Result* result) {
  if (result != nullptr) *result = Result();
}
// The same where nobody else has to hear of a pointer that is null.
template <typename Result>
absl::Status ClearResult(absl::string_view name, Result* result) {
  if (result == nullptr) return IsNull(name);
  Clear(result);
  return absl::OkStatus();
}

}  // namespace sluice::c

#endif  // SLUICE_SRC_C_CALL_H_
