// Reading a token, and a look at the file's mode.
#include "world/store/token_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "net/fd.h"
#include "tensor/error_text.h"
#include "transport/say_once.h"
#include "world/store/store_check.h"

namespace sluice {

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
  if (absl::Status status = CheckStoreToken(token); !status.ok()) {
    return MakeError(status.code(), "the file ", path, ": ", status);
  }
  absl::StripTrailingAsciiWhitespace(&token);
  if (token.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("the file ", path, " holds no token"));
  }
  return token;
}

}  // namespace sluice
