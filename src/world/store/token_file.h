// Tokens in files.
#ifndef SLUICE_SRC_WORLD_STORE_TOKEN_FILE_H_
#define SLUICE_SRC_WORLD_STORE_TOKEN_FILE_H_

#include <string>

#include "absl/status/statusor.h"

namespace sluice {

// The token in a file, without blanks behind it. Says once if other users may read the file.
// InvalidArgument: it is no regular file, or what it holds is no token.
absl::StatusOr<std::string> ReadTokenFile(const std::string& path);

}  // namespace sluice

#endif  // SLUICE_SRC_WORLD_STORE_TOKEN_FILE_H_
