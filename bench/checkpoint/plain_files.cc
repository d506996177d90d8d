// Indices and headers, as JSON.
#include "checkpoint/plain_files.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "workload/json_input.h"

namespace sluice::bench {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kLengthBytes = 8;

absl::StatusOr<std::vector<PlainFile>> FilesOfIndex(const fs::path& index) {
  const absl::StatusOr<std::string> text = ReadFile(index.string());
  if (!text.ok()) return text.status();
  const nlohmann::json json = nlohmann::json::parse(*text, nullptr, false);
  if (!json.is_object() || !json.contains("weight_map") || !json["weight_map"].is_object()) {
    return absl::InvalidArgumentError(absl::StrCat(index.string(), " has no weight_map"));
  }
  std::map<std::string, std::set<std::string>> tensors_of;  // by the file's name
  for (const auto& [tensor, file] : json["weight_map"].items()) {
    if (!file.is_string()) {
      return absl::InvalidArgumentError(
          absl::StrCat(index.string(), ": the file of '", Readable(tensor), "' is no text"));
    }
    tensors_of[file.get<std::string>()].insert(tensor);
  }
  std::vector<PlainFile> files;
  files.reserve(tensors_of.size());
  for (auto& [name, tensors] : tensors_of) {
    files.push_back({(index.parent_path() / name).string(), std::move(tensors)});
  }
  return files;
}

absl::StatusOr<PlainTensor> PlainTensorOf(const std::string& name, const nlohmann::json& entry,
                                          int64_t data_begin, int64_t file_bytes) {
  PlainTensor tensor = {.name = name};
  try {
    tensor.dtype = entry.at("dtype").get<std::string>();
    tensor.shape = entry.at("shape").get<std::vector<int64_t>>();
    tensor.begin = data_begin + entry.at("data_offsets").at(0).get<int64_t>();
    tensor.end = data_begin + entry.at("data_offsets").at(1).get<int64_t>();
  } catch (const nlohmann::json::exception& error) {
    return absl::InvalidArgumentError(
        absl::StrCat("tensor '", Readable(name), "': ", Readable(error.what())));
  }
  if (tensor.begin < data_begin || tensor.end < tensor.begin || tensor.end > file_bytes) {
    return absl::DataLossError(absl::StrCat("tensor '", Readable(name), "' lies outside the file"));
  }
  return tensor;
}

}  // namespace

absl::StatusOr<std::vector<PlainFile>> CheckpointFiles(const std::string& directory) {
  std::error_code error;
  const fs::path folder(directory);
  const fs::path index = folder / "model.safetensors.index.json";
  if (fs::exists(index, error)) return FilesOfIndex(index);
  const fs::path whole = folder / "model.safetensors";
  if (fs::exists(whole, error)) return std::vector<PlainFile>{{whole.string()}};
  std::vector<PlainFile> files;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (at->path().extension() == ".safetensors") files.push_back({at->path().string()});
  }
  if (error) {
    return absl::NotFoundError(absl::StrCat("cannot list ", directory, ": ", error.message()));
  }
  if (files.empty()) {
    return absl::NotFoundError(absl::StrCat(directory, " has no *.safetensors with tensors"));
  }
  std::sort(files.begin(), files.end(),
            [](const PlainFile& a, const PlainFile& b) { return a.path < b.path; });
  return files;
}

absl::StatusOr<std::vector<PlainTensor>> ParsePlainHeader(absl::string_view file) {
  const auto file_bytes = static_cast<int64_t>(file.size());
  uint64_t header_bytes = 0;
  if (file_bytes < kLengthBytes) return absl::DataLossError("the file has no header");
  std::memcpy(&header_bytes, file.data(), sizeof(header_bytes));  // little endian, as x86 is
  if (header_bytes > static_cast<uint64_t>(file_bytes - kLengthBytes)) {
    return absl::DataLossError("the file ends within its header");
  }
  const absl::string_view text = file.substr(kLengthBytes, header_bytes);
  const nlohmann::json json = nlohmann::json::parse(text.begin(), text.end(), nullptr, false);
  if (!json.is_object()) return absl::InvalidArgumentError("the header is no JSON object");
  const int64_t data_begin = kLengthBytes + static_cast<int64_t>(header_bytes);
  std::vector<PlainTensor> tensors;
  for (const auto& [name, entry] : json.items()) {
    if (name == "__metadata__") continue;
    absl::StatusOr<PlainTensor> tensor = PlainTensorOf(name, entry, data_begin, file_bytes);
    if (!tensor.ok()) return tensor.status();
    tensors.push_back(*std::move(tensor));
  }
  return tensors;
}

}  // namespace sluice::bench
