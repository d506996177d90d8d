// The names of a checkpoint's files, and what a directory without an index is taken for.
#ifndef SLUICE_SRC_SESSION_CHECKPOINT_CHECKPOINT_NAMES_H_
#define SLUICE_SRC_SESSION_CHECKPOINT_CHECKPOINT_NAMES_H_

#include <string>

#include "absl/strings/string_view.h"
#include "storage/open/source_address.h"

namespace sluice {

inline constexpr absl::string_view kCheckpointIndexName = "model.safetensors.index.json";
inline constexpr absl::string_view kCheckpointFileName = "model.safetensors";
// The name of the file that a save locks.
inline constexpr absl::string_view kCheckpointLockName = ".sluice-save.lock";

// "model-00001-of-00003.safetensors" for file 0 of 3, or, with a label,
// "model-LABEL-00001-of-00003.safetensors".
std::string ShardName(absl::string_view label, int file, int files);

// Whether a place is of one file, which is the checkpoint: it ends in ".safetensors".
bool IsOneFile(absl::string_view place);
// Takes the name of the file off such a place. Empty: the place is one of several.
std::string TakeFileName(SourceAddress* address);

// True for any numbers and any label of hexadecimal digits. Such a file counts only if an index
// names it. Without an index, a save that was killed has left it.
bool IsShardName(absl::string_view name);

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_CHECKPOINT_CHECKPOINT_NAMES_H_
