// The files of a checkpoint that is saved: what goes where in them, and how they come to be.
#ifndef SLUICE_SRC_SESSION_CHECKPOINT_FILES_H_
#define SLUICE_SRC_SESSION_CHECKPOINT_FILES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "sluice/checkpoint.h"
#include "storage/atomic_file.h"

namespace sluice {

// Pure: all ranks come to the same.
struct CheckpointFileLayout {
  struct File {
    std::string name;
    std::string header;
    int64_t bytes = 0;  // of the whole file
  };
  struct Place {
    int file = 0;
    int64_t begin = 0;  // bytes, in it
  };
  std::vector<File> files;
  std::vector<Place> places;  // of the tensors, in their order
  std::string index;          // empty: one file needs none
};
// Tensors in their order, as many in one file as shard_bytes_max allows. InvalidArgument for names
// and shapes that no reader takes.
absl::StatusOr<CheckpointFileLayout> LayOutCheckpoint(absl::Span<const CheckpointTensor> tensors,
                                                      int64_t shard_bytes_max);

// What one rank does for all: temporary files with headers, which get their names at the end.
// Everything waits for the file system.
class CheckpointFiles {
 public:
  CheckpointFiles() = default;
  CheckpointFiles(const CheckpointFiles&) = delete;
  CheckpointFiles& operator=(const CheckpointFiles&) = delete;
  // Removes what was not committed, and the directory if Create has made it.
  ~CheckpointFiles();

  absl::Status Create(const std::string& directory, const CheckpointFileLayout& layout);
  // One for each file of the layout.
  std::vector<std::string> temporaries() const;

  // Names for all files, the index last; then removes the index and shards of an older checkpoint
  // that would be read with, or instead of, this one. On an error what has its name already loses
  // it again, where there was nothing of that name before.
  absl::Status Commit();

 private:
  absl::Status CommitAll();
  void RemoveOlder() const;

  std::string directory_;
  bool made_directory_ = false;
  std::vector<std::string> names_;
  std::vector<AtomicFile> files_;  // the index is the last one, where there is one
  bool has_index_ = false;
  std::vector<std::string> appeared_;  // paths
};

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_CHECKPOINT_FILES_H_
