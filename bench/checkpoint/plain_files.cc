// Indices as JSON, and files as maps.
#include "checkpoint/plain_files.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "sluice/status.h"
#include "storage/element_type.h"
#include "storage/file/mapped_file.h"
#include "workload/json_input.h"

namespace sluice::bench {
namespace {

namespace fs = std::filesystem;

absl::StatusOr<std::vector<PlainFile>> FilesOfIndex(const fs::path& index) {
  SLUICE_ASSIGN_OR_RETURN(const std::string text, ReadFile(index.string()));
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
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

constexpr int64_t kAllowedShare = 100;  // one of so many pages

absl::Status CacheError(const char* call, const std::string& path) {
  return absl::ErrnoToStatus(errno, absl::StrCat(call, " of ", path));
}

absl::Status Drop(const std::string& path) {
  // Nobody touches the mapping: it brings nothing into the cache.
  SLUICE_ASSIGN_OR_RETURN(const MappedFile file, Prefixed(path, MappedFile::Map(AT_FDCWD, path)));
  // Pages that wait to be written stay in the cache.
  if (fdatasync(file.fd()) != 0 && errno != EINVAL && errno != EROFS) {
    return CacheError("fdatasync", path);
  }
  if (const int error = posix_fadvise(file.fd(), 0, 0, POSIX_FADV_DONTNEED); error != 0) {
    return absl::ErrnoToStatus(error, absl::StrCat("posix_fadvise of ", path));
  }
  if (access(path.c_str(), W_OK) != 0) return absl::OkStatus();  // mincore would not tell
  const auto bytes = static_cast<size_t>(file.bytes());
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> states((bytes + page - 1) / page);
  auto* const memory = const_cast<std::byte*>(file.data());  // NOLINT: mincore writes nothing
  if (mincore(memory, bytes, states.data()) != 0) return CacheError("mincore", path);
  const int64_t resident = std::count_if(states.begin(), states.end(),
                                         [](unsigned char state) { return (state & 1) != 0; });
  const auto all = static_cast<int64_t>(states.size());
  if (resident <= all / kAllowedShare) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("--cold: ", resident, " of ", all, " pages of ", path,
                   " stay in the page cache: its file system is memory, or it is in use"));
}

// A scalar of a checkpoint has shape {1} in memory.
bool SameShape(const std::vector<int64_t>& in_file, const std::vector<int64_t>& in_memory) {
  if (in_file.empty()) return in_memory == std::vector<int64_t>{1};
  return in_file == in_memory;
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

absl::Status ForEachTensor(const PlainFile& plain, absl::FunctionRef<TensorVisit> visit) {
  SLUICE_ASSIGN_OR_RETURN(const MappedFile file,
                          Prefixed(plain.path, MappedFile::Map(AT_FDCWD, plain.path)));
  SLUICE_ASSIGN_OR_RETURN(
      const auto header,
      Prefixed(plain.path, ParseSafetensorsHeader({file.data(), static_cast<size_t>(file.bytes())},
                                                  file.bytes())));
  for (const SafetensorsTensor& tensor : header.tensors) {
    if (!plain.Counts(tensor.name)) continue;
    SLUICE_RETURN_IF_ERROR(visit(tensor, file.data()));
  }
  return absl::OkStatus();
}

absl::Status DropFromPageCache(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) SLUICE_RETURN_IF_ERROR(Drop(path));
  return absl::OkStatus();
}

absl::StatusOr<MappedLoad> MappedLoad::Create(const std::string& directory,
                                              const RankTensors* tensors) {
  MappedLoad load(tensors);
  SLUICE_ASSIGN_OR_RETURN(load.files_, CheckpointFiles(directory));
  for (size_t i = 0; i < tensors->tensors().size(); ++i) {
    load.places_[tensors->tensors()[i].name] = i;
  }
  std::vector<bool> found(tensors->tensors().size(), false);
  const auto check = [&](size_t place, const SafetensorsTensor& entry, const std::byte*) {
    found[place] = true;
    return load.Check(place, entry);
  };
  SLUICE_RETURN_IF_ERROR(load.ForEachOfThem(check));
  for (size_t i = 0; i < found.size(); ++i) {
    if (found[i]) continue;
    return absl::NotFoundError(absl::StrCat("no file of ", directory, " has the tensor '",
                                            Readable(tensors->tensors()[i].name), "'"));
  }
  return load;
}

absl::Status MappedLoad::Run() const {
  return ForEachOfThem([this](size_t place, const SafetensorsTensor& entry, const std::byte* file) {
    Copy(place, entry, file);
    return absl::OkStatus();
  });
}

template <typename Visit>
absl::Status MappedLoad::ForEachOfThem(Visit visit) const {
  const auto find = [&](const SafetensorsTensor& entry, const std::byte* file) {
    const auto place = places_.find(entry.name);
    return place == places_.end() ? absl::OkStatus() : visit(place->second, entry, file);
  };
  for (const PlainFile& plain : files_) SLUICE_RETURN_IF_ERROR(ForEachTensor(plain, find));
  return absl::OkStatus();
}

absl::Status MappedLoad::Check(size_t place, const SafetensorsTensor& entry) const {
  const CheckpointTensor& tensor = tensors_->tensors()[place];
  const std::string name = absl::StrCat("tensor '", Readable(entry.name), "' ");
  if (!entry.unreadable.empty() || entry.type != ElementTypeOf(tensor.dtype)) {
    return absl::UnimplementedError(absl::StrCat(
        name, "is ", entry.unreadable.empty() ? SafetensorsName(entry.type) : entry.unreadable,
        " in the checkpoint, and nothing casts it"));
  }
  if (SameShape(entry.shape, tensor.shape)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(name, "has shape ", absl::StrJoin(entry.shape, ","), " in the checkpoint, not ",
                   absl::StrJoin(tensor.shape, ",")));
}

void MappedLoad::Copy(size_t place, const SafetensorsTensor& entry, const std::byte* file) const {
  const CheckpointTensor& tensor = tensors_->tensors()[place];
  const int64_t element = DTypeBytes(tensor.dtype);
  const std::byte* from = file + entry.begin;
  auto* to = static_cast<std::byte*>(tensor.view.data);
  tensors_->part(place).ForEachRun([=](int64_t local, int64_t global, int64_t count) {
    std::memcpy(to + local * element, from + global * element,
                static_cast<size_t>(count * element));
  });
}

}  // namespace sluice::bench
