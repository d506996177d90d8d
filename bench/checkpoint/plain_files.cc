// Indices and headers, as JSON.
#include "checkpoint/plain_files.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
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

#include "absl/cleanup/cleanup.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "storage/element_type.h"
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

constexpr int64_t kAllowedShare = 100;  // one of so many pages

struct Pages {
  int64_t all = 0;
  int64_t resident = 0;
};

absl::Status CacheError(const char* call, const std::string& path) {
  return absl::ErrnoToStatus(errno, absl::StrCat(call, " of ", path));
}

// A mapping that nobody touches: it brings nothing into the cache.
absl::StatusOr<Pages> PagesOf(int fd, int64_t bytes, const std::string& path) {
  if (bytes == 0) return Pages();
  const auto length = static_cast<size_t>(bytes);
  void* memory = mmap(nullptr, length, PROT_READ, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) return CacheError("mmap", path);
  const absl::Cleanup unmap = [memory, length] { munmap(memory, length); };
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> states((length + page - 1) / page);
  if (mincore(memory, length, states.data()) != 0) return CacheError("mincore", path);
  Pages pages = {.all = static_cast<int64_t>(states.size())};
  pages.resident = std::count_if(states.begin(), states.end(),
                                 [](unsigned char state) { return (state & 1) != 0; });
  return pages;
}

absl::Status Drop(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return CacheError("open", path);
  const absl::Cleanup closed = [fd] { close(fd); };
  // Pages that wait to be written stay in the cache.
  if (fdatasync(fd) != 0 && errno != EINVAL && errno != EROFS) return CacheError("fdatasync", path);
  if (const int error = posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED); error != 0) {
    return absl::ErrnoToStatus(error, absl::StrCat("posix_fadvise of ", path));
  }
  if (access(path.c_str(), W_OK) != 0) return absl::OkStatus();  // mincore would not tell
  struct stat facts = {};
  if (fstat(fd, &facts) != 0) return CacheError("fstat", path);
  const absl::StatusOr<Pages> pages = PagesOf(fd, facts.st_size, path);
  if (!pages.ok()) return pages.status();
  if (pages->resident <= pages->all / kAllowedShare) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("--cold: ", pages->resident, " of ", pages->all, " pages of ", path,
                   " stay in the page cache: its file system is memory, or it is in use"));
}

absl::Status MapError(const char* call, const std::string& path) {
  return absl::ErrnoToStatus(errno, absl::StrCat(call, " of ", path));
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

absl::Status DropFromPageCache(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    if (absl::Status status = Drop(path); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::StatusOr<MappedLoad> MappedLoad::Create(const std::string& directory,
                                              const RankTensors* tensors) {
  MappedLoad load(tensors);
  absl::StatusOr<std::vector<PlainFile>> files = CheckpointFiles(directory);
  if (!files.ok()) return files.status();
  load.files_ = *std::move(files);
  for (size_t i = 0; i < tensors->tensors().size(); ++i) {
    load.places_[tensors->tensors()[i].name] = i;
  }
  std::vector<bool> found(tensors->tensors().size(), false);
  for (const PlainFile& plain : load.files_) {
    absl::Status wrong;
    const auto visit = [&](size_t place, const PlainTensor& entry, const char*) {
      found[place] = true;
      if (wrong.ok()) wrong = load.Check(place, entry);
    };
    absl::Status status = load.ForEachTensor(plain, visit);
    if (status.ok()) status = wrong;
    if (!status.ok()) return status;
  }
  for (size_t i = 0; i < found.size(); ++i) {
    if (found[i]) continue;
    return absl::NotFoundError(absl::StrCat("no file of ", directory, " has the tensor '",
                                            Readable(tensors->tensors()[i].name), "'"));
  }
  return load;
}

absl::Status MappedLoad::Run() const {
  for (const PlainFile& plain : files_) {
    const auto visit = [this](size_t place, const PlainTensor& entry, const char* file) {
      Copy(place, entry, file);
    };
    if (absl::Status status = ForEachTensor(plain, visit); !status.ok()) return status;
  }
  return absl::OkStatus();
}

template <typename Visit>
absl::Status MappedLoad::ForEachTensor(const PlainFile& plain, Visit visit) const {
  const std::string& path = plain.path;
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return MapError("open", path);
  const absl::Cleanup closed = [fd] { close(fd); };
  struct stat facts = {};
  if (fstat(fd, &facts) != 0) return MapError("fstat", path);
  const auto bytes = static_cast<size_t>(facts.st_size);
  if (bytes == 0) return absl::DataLossError(absl::StrCat(path, " is empty"));
  void* memory = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) return MapError("mmap", path);
  const absl::Cleanup unmap = [memory, bytes] { munmap(memory, bytes); };
  const auto* file = static_cast<const char*>(memory);
  const auto header = ParsePlainHeader({file, bytes});
  if (!header.ok()) return Prefixed(path, header.status());
  for (const PlainTensor& entry : *header) {
    const auto place = places_.find(entry.name);
    if (place != places_.end() && plain.Counts(entry.name)) visit(place->second, entry, file);
  }
  return absl::OkStatus();
}

absl::Status MappedLoad::Check(size_t place, const PlainTensor& entry) const {
  const CheckpointTensor& tensor = tensors_->tensors()[place];
  const std::string name = absl::StrCat("tensor '", Readable(entry.name), "' ");
  if (!SameShape(entry.shape, tensor.shape)) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, "has shape ", absl::StrJoin(entry.shape, ","),
                     " in the checkpoint, not ", absl::StrJoin(tensor.shape, ",")));
  }
  const absl::string_view dtype = SafetensorsName(*ElementTypeOf(tensor.dtype));
  if (entry.dtype != dtype) {
    return absl::UnimplementedError(absl::StrCat(name, "is ", Readable(entry.dtype),
                                                 " in the checkpoint, and nothing casts it"));
  }
  const int64_t bytes = ElementsOf(tensor.shape) * DTypeBytes(tensor.dtype);
  if (entry.end - entry.begin == bytes) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat(name, "has ", entry.end - entry.begin, " bytes, not ", bytes));
}

void MappedLoad::Copy(size_t place, const PlainTensor& entry, const char* file) const {
  const CheckpointTensor& tensor = tensors_->tensors()[place];
  const int64_t element = DTypeBytes(tensor.dtype);
  const char* from = file + entry.begin;
  auto* to = static_cast<char*>(tensor.view.data);
  tensors_->part(place).ForEachRun([=](int64_t local, int64_t global, int64_t count) {
    std::memcpy(to + local * element, from + global * element,
                static_cast<size_t>(count * element));
  });
}

}  // namespace sluice::bench
