// Lays tensors out in the files of a checkpoint that is saved.
#ifndef SLUICE_SRC_SESSION_CHECKPOINT_CHECKPOINT_LAYOUT_H_
#define SLUICE_SRC_SESSION_CHECKPOINT_CHECKPOINT_LAYOUT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "sluice/checkpoint.h"
#include "storage/format/checkpoint_index.h"
#include "storage/format/safetensors.h"

namespace sluice {

struct CheckpointFileLayout {
  struct File {
    std::string name;  // the customary one
    std::string header;
    int64_t bytes = 0;  // of the whole file
  };
  struct FilePosition {
    int file = 0;
    int64_t begin = 0;  // bytes, in it
  };
  std::vector<File> files;
  std::vector<FilePosition> places;  // of the tensors, in their order
  // Its files are `files`, in their order. Nothing: one file needs none.
  absl::optional<CheckpointIndex> index;
};

// Tensors in their order, as many in one file as shard_bytes_max allows. Pure: all ranks come to
// the same, but for `save_id`, which headers and index have; those of equal length change no place.
// `metadata`: goes into the index or, without an index, into the file.
// InvalidArgument for names and shapes that no reader takes, and for wrong keys.
absl::StatusOr<CheckpointFileLayout> LayOutCheckpoint(absl::Span<const CheckpointTensor> tensors,
                                                      int64_t shard_bytes_max,
                                                      absl::string_view save_id,
                                                      const SafetensorsMetadata& metadata = {});

// A new one, of SaveIdBytes characters.
absl::StatusOr<std::string> NewSaveId();
inline constexpr int kSaveIdBytes = 16;

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_CHECKPOINT_CHECKPOINT_LAYOUT_H_
