// Tensors in files, and their headers.
#include "session/checkpoint/checkpoint_layout.h"

#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "session/checkpoint/checkpoint_input.h"
#include "session/checkpoint/checkpoint_names.h"
#include "storage/file/atomic_file.h"
#include "storage/format/safetensors.h"
#include "tensor/quoted.h"

namespace sluice {
namespace {

// So that reads past the page cache begin at a block, where tensors are whole blocks.
constexpr int64_t kDataAlignment = 4096;

constexpr absl::string_view kFormatKey = "format";

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

absl::Status CheckKeys(const SafetensorsMetadata& metadata) {
  absl::flat_hash_set<absl::string_view> keys = {kFormatKey, kSaveIdKey, kTotalSizeKey};
  for (const auto& [key, text] : metadata) {
    if (keys.insert(key).second) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("metadata has the key ", Quoted(key), " twice, or it is the format's own"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CheckpointFileLayout> LayOutCheckpoint(absl::Span<const CheckpointTensor> tensors,
                                                      int64_t shard_bytes_max,
                                                      absl::string_view save_id,
                                                      const SafetensorsMetadata& metadata) {
  if (absl::Status status = CheckKeys(metadata); !status.ok()) return status;
  const std::vector<int> file_of = Divide(tensors, shard_bytes_max);
  const int files = file_of.empty() ? 0 : file_of.back() + 1;
  CheckpointFileLayout layout;
  layout.places.resize(tensors.size());
  CheckpointIndex index;
  index.total_bytes = 0;
  index.save_id = std::string(save_id);
  index.metadata = metadata;
  size_t next = 0;
  for (int file = 0; file < files; ++file) {
    const size_t first = next;
    std::vector<SafetensorsSpec> specs;
    for (; next < tensors.size() && file_of[next] == file; ++next) {
      const CheckpointTensor& tensor = tensors[next];
      specs.push_back({tensor.name, *ElementTypeOf(FileDTypeOf(tensor)), tensor.shape});
      index.tensors.push_back({tensor.name, file});
      index.total_bytes += BytesOf(tensor);
    }
    SafetensorsMetadata own = {{std::string(kFormatKey), "pt"},
                               {std::string(kSaveIdKey), index.save_id}};
    if (files == 1) own.insert(own.end(), metadata.begin(), metadata.end());
    absl::StatusOr<SafetensorsLayout> laid_out = LayOutSafetensors(specs, own, kDataAlignment);
    if (!laid_out.ok()) return laid_out.status();
    for (size_t i = 0; i < specs.size(); ++i) {
      layout.places[first + i] = {file, laid_out->tensors[i].begin};
    }
    const std::string name =
        files == 1 ? std::string(kCheckpointFileName) : ShardName("", file, files);
    index.files.push_back(name);
    layout.files.push_back({name, std::move(laid_out->header), laid_out->object_bytes});
  }
  if (files > 1) layout.index = std::move(index);
  return layout;
}

absl::StatusOr<std::string> NewSaveId() {
  const absl::StatusOr<uint64_t> number = RandomNumber();
  if (!number.ok()) return number.status();
  return absl::StrFormat("%0*x", kSaveIdBytes, *number);
}

}  // namespace sluice
