// model.safetensors.index.json: which file of a checkpoint in several files holds which tensor.
#ifndef SLUICE_SRC_STORAGE_FORMAT_CHECKPOINT_INDEX_H_
#define SLUICE_SRC_STORAGE_FORMAT_CHECKPOINT_INDEX_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace sluice {

struct CheckpointIndexLimits {
  int64_t text_bytes = 100'000'000;
  int64_t tensors = 4'000'000;
};

// In the metadata of an index, and of the files that it names.
inline constexpr absl::string_view kSaveIdKey = "sluice_save_id";
inline constexpr absl::string_view kTotalSizeKey = "total_size";  // of an index alone

struct CheckpointIndex {
  struct Entry {
    std::string tensor;
    int file = 0;  // a place in `files`
  };
  std::vector<std::string> files;  // distinct, ascending; CheckObjectName is OK for each
  std::vector<Entry> tensors;      // distinct names, ascending
  int64_t total_bytes = -1;        // "total_size" of the metadata: of all tensors; -1 if not given
  // kSaveIdKey of the metadata, which the files' own metadata has as well: so that files of one
  // save are known from those of another one. Empty if not given.
  std::string save_id = {};
  // The other texts of the metadata, in the order of the index.
  std::vector<std::pair<std::string, std::string>> metadata = {};
};

// Reads an index; keys that it does not know are passed over. InvalidArgument says what is wrong.
absl::StatusOr<CheckpointIndex> ParseCheckpointIndex(absl::string_view text,
                                                     const CheckpointIndexLimits& limits = {});

// The text of an index, as the transformers library writes it. Entries in any order;
// InvalidArgument for names that no reader takes.
absl::StatusOr<std::string> CheckpointIndexText(const CheckpointIndex& index);

}  // namespace sluice

#endif  // SLUICE_SRC_STORAGE_FORMAT_CHECKPOINT_INDEX_H_
