// Checks of arguments.
#include "world/store/store_check.h"

#include "absl/strings/str_cat.h"
#include "sluice/store.h"
#include "tensor/quoted.h"

namespace sluice {

std::string DurationText(absl::Duration duration) {
  const absl::Duration unit =
      duration < absl::Seconds(1) ? absl::Microseconds(1) : absl::Milliseconds(1);
  return absl::FormatDuration(absl::Trunc(duration + unit / 2, unit));
}

absl::Status CheckStoreToken(absl::string_view token) {
  if (token.size() > kMaxStoreTokenBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the token has more than ", kMaxStoreTokenBytes, " bytes"));
  }
  // HMAC fills its key up with them: tokens that differ in these alone would be equal.
  if (token.find('\0') == token.npos) return absl::OkStatus();
  return absl::InvalidArgumentError("the token has a zero byte: take text, such as base64");
}

absl::Status CheckStoreKey(absl::string_view key) {
  if (key.empty()) return absl::InvalidArgumentError("a key of the store is empty");
  return CheckStorePrefix(key);
}

absl::Status CheckStorePrefix(absl::string_view prefix) {
  if (prefix.size() <= kMaxStoreKeyBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("a key of the store has ", prefix.size(),
                                                 " bytes, more than ", kMaxStoreKeyBytes, ": ",
                                                 Quoted(prefix)));
}

absl::Status CheckStoreValue(absl::string_view key, absl::string_view value) {
  if (value.size() <= kMaxStoreValueBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the value of the store's key ", Quoted(key),
                                                 " has ", value.size(), " bytes, more than ",
                                                 kMaxStoreValueBytes));
}

absl::Status CheckStoreHold(absl::string_view key, absl::string_view value, absl::Duration lease) {
  if (absl::Status status = CheckStoreKey(key); !status.ok()) return status;
  if (absl::Status status = CheckStoreValue(key, value); !status.ok()) return status;
  if (value.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the key ", Quoted(key), " cannot be held with an empty value"));
  }
  if (lease >= absl::Milliseconds(100) && lease <= absl::Hours(1)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the lease of the key ", Quoted(key), " is ",
                                                 DurationText(lease), ", not from 100ms to 1h"));
}

absl::Status CopyForThread(const absl::Status& status) {
  return absl::Status(status.code(), status.message());
}

absl::Status StoreForkedError() {
  return absl::FailedPreconditionError(
      "the store belongs to the process that opened it, and this is a child that was forked: open "
      "the store anew here");
}

}  // namespace sluice
