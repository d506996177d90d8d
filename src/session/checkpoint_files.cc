// Shards, their names, and their index.
#include "session/checkpoint_files.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "session/checkpoint_catalog.h"
#include "session/checkpoint_input.h"
#include "storage/checkpoint_index.h"
#include "storage/safetensors.h"

namespace sluice {
namespace {

// So that reads past the page cache begin at a block, where tensors are whole blocks.
constexpr int64_t kDataAlignment = 4096;

int64_t BytesOf(const CheckpointTensor& tensor) {
  int64_t bytes = DTypeBytes(FileDTypeOf(tensor));
  for (const int64_t size : tensor.shape) bytes *= size;
  return bytes;
}

// Which file each tensor goes to.
std::vector<int> Divide(absl::Span<const CheckpointTensor> tensors, int64_t shard_bytes_max) {
  std::vector<int> file_of;
  int file = 0;
  int64_t filled = 0;
  for (const CheckpointTensor& tensor : tensors) {
    const int64_t bytes = BytesOf(tensor);
    if (filled > 0 && bytes > shard_bytes_max - filled) {
      ++file;
      filled = 0;
    }
    filled += bytes;
    file_of.push_back(file);
  }
  return file_of;
}

// "model-00001-of-00003.safetensors", of any numbers.
bool IsShardName(const std::string& name) {
  const std::string pattern = "model-#####-of-#####.safetensors";
  return name.size() == pattern.size() &&
         std::equal(name.begin(), name.end(), pattern.begin(),
                    [](char c, char p) { return p == '#' ? c >= '0' && c <= '9' : c == p; });
}

}  // namespace

absl::StatusOr<CheckpointFileLayout> LayOutCheckpoint(absl::Span<const CheckpointTensor> tensors,
                                                      int64_t shard_bytes_max) {
  const std::vector<int> file_of = Divide(tensors, shard_bytes_max);
  const int files = file_of.empty() ? 0 : file_of.back() + 1;
  CheckpointFileLayout layout;
  layout.places.resize(tensors.size());
  CheckpointIndex index;
  index.total_bytes = 0;
  size_t next = 0;
  for (int file = 0; file < files; ++file) {
    const size_t first = next;
    std::vector<SafetensorsSpec> specs;
    for (; next < tensors.size() && file_of[next] == file; ++next) {
      const CheckpointTensor& tensor = tensors[next];
      specs.push_back({tensor.name, ElementTypeOf(FileDTypeOf(tensor)), tensor.shape});
      index.tensors.push_back({tensor.name, file});
      index.total_bytes += BytesOf(tensor);
    }
    absl::StatusOr<SafetensorsLayout> laid_out =
        LayOutSafetensors(specs, {{"format", "pt"}}, kDataAlignment);
    if (!laid_out.ok()) return laid_out.status();
    for (size_t i = 0; i < specs.size(); ++i) {
      layout.places[first + i] = {file, laid_out->tensors[i].begin};
    }
    const std::string name =
        files == 1 ? std::string(kCheckpointFileName)
                   : absl::StrFormat("model-%05d-of-%05d.safetensors", file + 1, files);
    index.files.push_back(name);
    layout.files.push_back({name, std::move(laid_out->header), laid_out->object_bytes});
  }
  if (files == 1) return layout;
  absl::StatusOr<std::string> text = CheckpointIndexText(index);
  if (!text.ok()) return text.status();
  layout.index = *std::move(text);
  return layout;
}

CheckpointFiles::~CheckpointFiles() {
  files_.clear();
  std::error_code ignored;  // it is not empty: somebody uses it
  if (made_directory_) std::filesystem::remove(directory_, ignored);
}

absl::Status CheckpointFiles::Create(const std::string& directory,
                                     const CheckpointFileLayout& layout) {
  directory_ = directory;
  std::error_code error;
  made_directory_ = std::filesystem::create_directory(directory, error);
  if (error) {
    return absl::Status(absl::StatusCode::kNotFound,
                        absl::StrCat("cannot make ", directory, ": ", error.message()));
  }
  const auto add = [this](const std::string& name, const std::string& text,
                          int64_t bytes) -> absl::Status {
    absl::StatusOr<AtomicFile> file = AtomicFile::Create(absl::StrCat(directory_, "/", name));
    if (!file.ok()) return file.status();
    names_.push_back(name);
    files_.push_back(*std::move(file));
    if (absl::Status status = files_.back().WriteAt(0, text); !status.ok()) return status;
    return files_.back().Resize(bytes);
  };
  for (const CheckpointFileLayout::File& file : layout.files) {
    if (absl::Status status = add(file.name, file.header, file.bytes); !status.ok()) return status;
  }
  has_index_ = !layout.index.empty();
  if (!has_index_) return absl::OkStatus();
  return add(std::string(kCheckpointIndexName), layout.index,
             static_cast<int64_t>(layout.index.size()));
}

std::vector<std::string> CheckpointFiles::temporaries() const {
  std::vector<std::string> temporaries;
  for (const AtomicFile& file : files_) temporaries.push_back(file.temporary());
  if (has_index_) temporaries.pop_back();
  return temporaries;
}

absl::Status CheckpointFiles::Commit() {
  absl::Status status = CommitAll();
  if (status.ok()) {
    made_directory_ = false;
    RemoveOlder();
    return status;
  }
  std::error_code ignored;
  for (const std::string& path : appeared_) std::filesystem::remove(path, ignored);
  return status;
}

absl::Status CheckpointFiles::CommitAll() {
  for (size_t i = 0; i < files_.size(); ++i) {
    const std::string path = absl::StrCat(directory_, "/", names_[i]);
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored)) appeared_.push_back(path);
    if (absl::Status status = files_[i].Commit(); !status.ok()) return status;
  }
  return absl::OkStatus();
}

void CheckpointFiles::RemoveOlder() const {
  std::error_code ignored;
  std::vector<std::filesystem::path> older;
  for (std::filesystem::directory_iterator at(directory_, ignored), end; !ignored && at != end;
       at.increment(ignored)) {
    const std::string name = at->path().filename().string();
    const bool ours =
        name == kCheckpointFileName || name == kCheckpointIndexName || IsShardName(name);
    if (ours && std::find(names_.begin(), names_.end(), name) == names_.end()) {
      older.push_back(at->path());
    }
  }
  // The index first: without it nobody is led to shards that are gone.
  std::sort(older.begin(), older.end(), [](const auto& a, const auto& b) {
    return (a.filename().string() == kCheckpointIndexName) >
           (b.filename().string() == kCheckpointIndexName);
  });
  for (const std::filesystem::path& path : older) std::filesystem::remove(path, ignored);
}

}  // namespace sluice
