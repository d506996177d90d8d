// Checks keys, values, times and tokens for every store.
#ifndef SLUICE_SRC_WORLD_STORE_STORE_CHECK_H_
#define SLUICE_SRC_WORLD_STORE_STORE_CHECK_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace sluice {

inline constexpr size_t kMaxStoreTokenBytes = 4096;

// For messages: "6s" for what was counted as 5.99999995s.
std::string DurationText(absl::Duration duration);

// InvalidArgument: it has a zero byte, or more than kMaxStoreTokenBytes. May be empty.
absl::Status CheckStoreToken(absl::string_view token);
// The token in a file, without blanks behind it. Says once if other users may read the file.
// InvalidArgument: it is no regular file, or what it holds is no token.
absl::StatusOr<std::string> ReadTokenFile(const std::string& path);
absl::Status CheckStoreKey(absl::string_view key);
absl::Status CheckStorePrefix(absl::string_view prefix);
absl::Status CheckStoreValue(absl::string_view key, absl::string_view value);
absl::Status CheckStoreHold(absl::string_view key, absl::string_view value, absl::Duration lease);

// The same, without sharing its text with another thread's copy. The thread sanitizer does not see
// how Abseil's installed library counts copies.
absl::Status CopyForThread(const absl::Status& status);

// The error of calls in a forked child.
absl::Status StoreForkedError();

}  // namespace sluice

#endif  // SLUICE_SRC_WORLD_STORE_STORE_CHECK_H_
