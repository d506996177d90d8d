// Looking beside the program, so that an install tree can be moved.
#include "workload/shipped_file.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "workload/json_input.h"

namespace sluice::bench {
namespace {

std::string ShareOfThisProgram() {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return "";
  return (program.parent_path().parent_path() / "share" / "sluice").string();
}

}  // namespace

absl::StatusOr<std::string> ReadShippedFile(const std::string& name, absl::string_view folder,
                                            const std::string& share) {
  auto text = ReadFile(name);
  if (!absl::IsNotFound(text.status()) || share.empty() || absl::StrContains(name, '/')) {
    return text;
  }
  const std::string path = absl::StrCat(share, "/", folder, "/", name);
  for (const char* ending : {"", ".json"}) {
    auto shipped = ReadFile(absl::StrCat(path, ending));
    if (!absl::IsNotFound(shipped.status())) return shipped;
  }
  return absl::NotFoundError(
      absl::StrCat(text.status().message(), "; nor is there ", path, " or ", path, ".json"));
}

absl::StatusOr<std::string> ReadShippedFile(const std::string& name, absl::string_view folder) {
  return ReadShippedFile(name, folder, ShareOfThisProgram());
}

std::string ShippedPath(absl::string_view name) {
  return absl::StrCat(ShareOfThisProgram(), "/", name);
}

}  // namespace sluice::bench
