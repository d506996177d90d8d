// Looks at a name first, and at the file behind it if the name counts.
#include "storage/listed_file.h"

#include <string>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "storage/object_name.h"
#include "storage/source_check.h"
#include "tensor/error_text.h"
#include "tensor/quoted.h"

namespace sluice {

absl::StatusOr<bool> CountsAsData(const std::filesystem::directory_entry& entry,
                                  absl::string_view extension) {
  const std::string name = entry.path().filename().string();
  if (name[0] == '.') return false;
  if (!extension.empty() && entry.path().extension().string() != extension) return false;
  std::error_code error;
  const std::filesystem::file_status facts = entry.status(error);
  if (facts.type() == std::filesystem::file_type::not_found) {
    std::error_code none;
    if (!entry.is_symlink(none)) return false;  // it has gone meanwhile
    const std::filesystem::path target = std::filesystem::read_symlink(entry.path(), none);
    return absl::InvalidArgumentError(absl::StrCat(
        Quoted(name), " is a link to ", Quoted(target.string()), ", which is not there"));
  }
  if (error) return ReadErrnoStatus(error.value(), Quoted(name));
  if (facts.type() != std::filesystem::file_type::regular) return false;
  SLUICE_RETURN_IF_ERROR(CheckObjectName(name));
  return true;
}

}  // namespace sluice
