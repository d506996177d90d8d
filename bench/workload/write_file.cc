// Writing a file, and saying why it could not be.
#include "workload/write_file.h"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "sluice/status.h"

namespace sluice::bench {

absl::Status WriteFile(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (file) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("cannot write ", path, ": ", std::generic_category().message(errno)));
}

absl::Status KeepApart(std::string* json_file, absl::Span<const NamedFile> others) {
  for (const NamedFile& other : others) {
    if (json_file->empty() || other.path.empty()) continue;
    std::error_code error;
    if (*json_file != other.path && !std::filesystem::equivalent(*json_file, other.path, error)) {
      continue;
    }
    absl::Status status = absl::InvalidArgumentError(
        absl::StrCat("--json: ", *json_file, " is the file of ", other.flag));
    json_file->clear();
    return status;
  }
  return absl::OkStatus();
}

absl::Status MakeWritable(absl::Span<const std::string> paths) {
  for (const std::string& path : paths) {
    if (path.empty()) continue;
    SLUICE_RETURN_IF_ERROR(WriteFile(path, ""));
  }
  return absl::OkStatus();
}

}  // namespace sluice::bench
