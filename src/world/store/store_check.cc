// Checks of arguments.
#include "world/store/store_check.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "net/fd.h"
#include "sluice/store.h"
#include "tensor/error_text.h"
#include "tensor/quoted.h"
#include "transport/say_once.h"

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

absl::StatusOr<std::string> ReadTokenFile(const std::string& path) {
  // The open of a pipe would wait for somebody who writes.
  const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat about = {};
  if (!file.is_open() || fstat(file.get(), &about) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot read the token in ", path));
  }
  if (!S_ISREG(about.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot read the token in ", path, ": it is no regular file"));
  }
  if ((about.st_mode & (S_IRGRP | S_IROTH)) != 0) {
    SayOnce(absl::StrCat("other users may read the token in ", path, ": chmod 600"));
  }
  std::string token(kMaxStoreTokenBytes + 1, '\0');
  size_t bytes = 0;
  while (bytes < token.size()) {
    const ssize_t got = read(file.get(), &token[bytes], token.size() - bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      return absl::ErrnoToStatus(errno, absl::StrCat("cannot read the token in ", path));
    }
    if (got == 0) break;
    bytes += static_cast<size_t>(got);
  }
  token.resize(bytes);
  SLUICE_RETURN_IF_ERROR(Annotate(CheckStoreToken(token), "the file ", path));
  absl::StripTrailingAsciiWhitespace(&token);
  if (token.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("the file ", path, " holds no token"));
  }
  return token;
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
  SLUICE_RETURN_IF_ERROR(CheckStoreKey(key));
  SLUICE_RETURN_IF_ERROR(CheckStoreValue(key, value));
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
