// The files of a checkpoint that is saved: all of them come to be, or none.
//
// The directory holds the older checkpoint until one file takes or loses its name: the index or
// model.safetensors. It holds the newer one from then on. docs/checkpoints.md has the steps.
#ifndef SLUICE_SRC_SESSION_CHECKPOINT_CHECKPOINT_FILES_H_
#define SLUICE_SRC_SESSION_CHECKPOINT_CHECKPOINT_FILES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "session/checkpoint/checkpoint_layout.h"
#include "storage/file/atomic_file.h"
#include "storage/file/directory_lock.h"
#include "storage/file/file_identity.h"

namespace sluice {

// One rank's work for all: makes temporary files with headers, which get their names at the end.
// Every call waits for the file system. Thread: one at a time.
class CheckpointFiles {
 public:
  CheckpointFiles() = default;
  CheckpointFiles(const CheckpointFiles&) = delete;
  CheckpointFiles& operator=(const CheckpointFiles&) = delete;
  ~CheckpointFiles() { Discard(); }

  // Makes the directory, locks it, removes temporaries of saves that were killed, and makes those
  // of this one. FailedPrecondition: another save into the directory is under way.
  absl::Status Create(const std::string& directory, const CheckpointFileLayout& layout);
  // Whether there has been a call of Create.
  bool begun() const { return !directory_.empty(); }
  // One for each file of the layout.
  std::vector<std::string> temporaries() const;

  // Once, when all ranks have synced what they wrote. On an error the directory is as it was,
  // unless the error says that the new checkpoint is in place. FailedPrecondition: on a file system
  // without locks another save has ended meanwhile. The directory then has the other save's
  // checkpoint, or the one that the error tells of.
  absl::Status Commit();

  // Removes what was not committed, and the directory if Create has made it. More than once changes
  // nothing.
  void Discard();

 private:
  absl::Status MakeDirectory();
  void RemoveStale() const;
  // Which names this save takes: none that is there, or that the index of an older save has.
  absl::Status ChooseNames(const CheckpointFileLayout& layout);
  absl::Status Add(const std::string& name, absl::string_view text, int64_t bytes);

  std::string PathOf(absl::string_view name) const;
  // The file that counts in place of an index, or before model.safetensors.
  std::string RivalPath() const;
  absl::Status SyncAll();
  absl::Status NameShards();
  absl::Status Publish();
  // Removes the file at `path`, which would count beside the new checkpoint.
  absl::Status RemoveRival(const std::string& path) const;
  absl::Status RemoveOlder() const;
  // Takes back the names that have appeared. False if the last of them, by which the new checkpoint
  // counts, cannot be removed: the others are then there, too.
  bool Undo();

  std::string directory_;
  bool made_directory_ = false;
  absl::optional<DirectoryLock> lock_;
  std::vector<std::string> older_files_;  // that the older index names
  std::vector<std::string> names_;
  // The last one is the index, or model.safetensors: with its name the checkpoint is there.
  std::vector<AtomicFile> files_;
  bool has_index_ = false;
  std::vector<std::string> appeared_;  // paths, which nothing had before
  // On a file system without locks another saver may change both meanwhile:
  absl::optional<FileIdentity> rival_;      // what RemoveRival may remove
  absl::optional<FileIdentity> published_;  // the last of files_, once its bytes are written
};

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_CHECKPOINT_CHECKPOINT_FILES_H_
