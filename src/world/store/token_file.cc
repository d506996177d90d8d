// Reading a token, and a look at the file's mode.
#include "world/store/token_file.h"

#include <sys/stat.h>

#include <cerrno>
#include <fstream>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "transport/say_once.h"
#include "world/store/store_proof.h"

namespace sluice {

absl::StatusOr<std::string> ReadTokenFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::ErrnoToStatus(errno, absl::StrCat("cannot read the token in ", path));
  struct stat about = {};
  if (stat(path.c_str(), &about) == 0 && (about.st_mode & (S_IRGRP | S_IROTH)) != 0) {
    SayOnce(absl::StrCat("other users may read the token in ", path, ": chmod 600"));
  }
  std::string token(kMaxStoreTokenBytes + 1, '\0');
  file.read(token.data(), static_cast<std::streamsize>(token.size()));
  token.resize(static_cast<size_t>(file.gcount()));
  if (token.size() > kMaxStoreTokenBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the file ", path, " has more than ", kMaxStoreTokenBytes, " bytes"));
  }
  absl::StripTrailingAsciiWhitespace(&token);
  if (token.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("the file ", path, " holds no token"));
  }
  return token;
}

}  // namespace sluice
