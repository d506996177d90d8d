// mmap and memcpy.
#include "checkpoint/mapped_load.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "storage/element_type.h"
#include "workload/json_input.h"

namespace sluice::bench {
namespace {

absl::Status MapError(const char* call, const std::string& path) {
  return absl::ErrnoToStatus(errno, absl::StrCat(call, " of ", path));
}

// A scalar of a checkpoint has shape {1} in memory.
bool SameShape(const std::vector<int64_t>& in_file, const std::vector<int64_t>& in_memory) {
  if (in_file.empty()) return in_memory == std::vector<int64_t>{1};
  return in_file == in_memory;
}

}  // namespace

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
