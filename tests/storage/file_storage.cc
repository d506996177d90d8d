// Temporary files.
#include "storage/file_storage.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "tensor/check.h"

namespace sluice {

FileStorage::FileStorage(const std::string& parent) {
  const std::string base =
      parent.empty() ? std::filesystem::temp_directory_path().string() : parent;
  directory_ = absl::StrCat(base, "/sluice-files-XXXXXX");
  SLUICE_CHECK(mkdtemp(directory_.data()) != nullptr, "no temporary directory");
}

FileStorage::~FileStorage() {
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

std::string FileStorage::Path(absl::string_view name) const {
  return absl::StrCat(directory_, "/", name);
}

void FileStorage::Write(absl::string_view name, absl::string_view content) const {
  const std::filesystem::path path = Path(name);
  std::filesystem::create_directories(path.parent_path());
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(content.data(), static_cast<std::streamsize>(content.size()));
  file.close();
  SLUICE_CHECK(file.good(), "a file of a test cannot be written");
}

std::vector<std::string> FileStorage::Write(const std::vector<ContractObject>& objects) const {
  std::vector<std::string> names;
  for (const ContractObject& object : objects) {
    if (object.content.has_value()) Write(object.name, *object.content);
    names.push_back(object.name);
  }
  return names;
}

}  // namespace sluice
