// The steps of a save, in an order in which each of them may be the last.
#include "session/checkpoint/checkpoint_files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "session/checkpoint/checkpoint_names.h"
#include "storage/file/remove_same.h"
#include "storage/file/whole_file.h"
#include "storage/format/checkpoint_index.h"
#include "storage/source_check.h"
#include "tensor/error_text.h"

namespace sluice {
namespace {

bool Exists(const std::string& path) {
  struct stat facts = {};
  return lstat(path.c_str(), &facts) == 0;
}

absl::Status Remove(const std::string& path) {
  if (unlink(path.c_str()) == 0 || errno == ENOENT) return absl::OkStatus();
  return ReadErrnoStatus(errno, absl::StrCat("cannot remove ", path));
}

// Names in the directory that `choose` takes.
template <class Choose>
absl::StatusOr<std::vector<std::string>> List(const std::string& directory, const Choose& choose) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator at(directory, error), end; !error && at != end;
       at.increment(error)) {
    std::string name = at->path().filename().string();
    if (choose(name)) names.push_back(std::move(name));
  }
  if (!error) return names;
  return ReadErrnoStatus(error.value(), absl::StrCat("cannot list ", directory));
}

bool Contains(const std::vector<std::string>& names, absl::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// A temporary's name begins with a dot and the file's.
bool IsTemporary(absl::string_view name) {
  if (IsTemporaryOf(name, kCheckpointFileName) || IsTemporaryOf(name, kCheckpointIndexName)) {
    return true;
  }
  constexpr absl::string_view kShardEnd = ".safetensors";
  const size_t end = name.find(kShardEnd);
  if (name.empty() || end == name.npos) return false;
  const absl::string_view shard = name.substr(1, end - 1 + kShardEnd.size());
  return IsShardName(shard) && IsTemporaryOf(name, shard);
}

absl::Status InPlaceBut(const absl::Status& status) {
  return MakeError(status.code(), "the new checkpoint is in place, but ", status);
}

}  // namespace

std::string CheckpointFiles::PathOf(absl::string_view name) const {
  return absl::StrCat(directory_, "/", name);
}

std::string CheckpointFiles::RivalPath() const {
  return PathOf(has_index_ ? kCheckpointFileName : kCheckpointIndexName);
}

void CheckpointFiles::Discard() {
  files_.clear();
  lock_.reset();
  // If it is not empty, somebody uses it.
  if (std::exchange(made_directory_, false)) rmdir(directory_.c_str());
}

absl::Status CheckpointFiles::MakeDirectory() {
  made_directory_ = mkdir(directory_.c_str(), 0777) == 0;
  if (made_directory_ || errno == EEXIST) return absl::OkStatus();
  return ReadErrnoStatus(errno, absl::StrCat("cannot make ", directory_));
}

void CheckpointFiles::RemoveStale() const {
  // On a file system without locks, the saver of a temporary may well be alive.
  if (!lock_->held()) return;
  const absl::StatusOr<std::vector<std::string>> stale = List(directory_, IsTemporary);
  if (!stale.ok()) return;
  // A file that cannot be removed is in nobody's way.
  for (const std::string& name : *stale) unlink(PathOf(name).c_str());
}

absl::Status CheckpointFiles::ChooseNames(const CheckpointFileLayout& layout) {
  if (!lock_->held()) {
    const auto rival = IdentifyPath(RivalPath());
    if (!rival.ok()) return rival.status();
    rival_ = *rival;
  }
  bool is_readable = true;
  const absl::StatusOr<WholeFile> older =
      ReadWholeFile(PathOf(kCheckpointIndexName), CheckpointIndexLimits().text_bytes);
  if (older.ok()) {
    absl::StatusOr<CheckpointIndex> index = ParseCheckpointIndex(older->text);
    is_readable = index.ok();
    if (index.ok()) older_files_ = std::move(index->files);
  } else if (!absl::IsNotFound(older.status())) {
    is_readable = false;
  }
  for (const CheckpointFileLayout::File& file : layout.files) names_.push_back(file.name);
  if (!has_index_) return absl::OkStatus();
  const bool is_free = std::none_of(names_.begin(), names_.end(), [this](const std::string& name) {
    return Exists(PathOf(name)) || Contains(older_files_, name);
  });
  // Without a lock another saver may be about to take the customary names.
  if (is_free && is_readable && lock_->held()) return absl::OkStatus();
  const absl::string_view label = absl::string_view(layout.index->save_id).substr(0, 8);
  const int files = static_cast<int>(names_.size());
  for (int file = 0; file < files; ++file) {
    std::string& name = names_[static_cast<size_t>(file)];
    name = ShardName(label, file, files);
    if (!Exists(PathOf(name)) && !Contains(older_files_, name)) continue;
    return absl::AlreadyExistsError(absl::StrCat(PathOf(name), " is there already"));
  }
  return absl::OkStatus();
}

absl::Status CheckpointFiles::Add(const std::string& name, absl::string_view text, int64_t bytes) {
  SLUICE_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(PathOf(name)));
  files_.push_back(std::move(file));
  if (absl::Status status = files_.back().WriteAt(0, text); !status.ok()) return status;
  return files_.back().Resize(bytes);
}

absl::Status CheckpointFiles::Create(const std::string& directory,
                                     const CheckpointFileLayout& layout) {
  directory_ = directory;
  has_index_ = layout.index.has_value();
  if (absl::Status status = MakeDirectory(); !status.ok()) return status;
  absl::StatusOr<DirectoryLock> lock = DirectoryLock::Take(directory_, kCheckpointLockName);
  if (absl::IsFailedPrecondition(lock.status())) {
    return MakeError(absl::StatusCode::kFailedPrecondition, "another save into ", directory_,
                     " is under way: ", lock.status());
  }
  if (!lock.ok()) return lock.status();
  lock_ = *std::move(lock);
  RemoveStale();
  if (absl::Status status = ChooseNames(layout); !status.ok()) return status;
  for (size_t i = 0; i < layout.files.size(); ++i) {
    const CheckpointFileLayout::File& file = layout.files[i];
    if (absl::Status status = Add(names_[i], file.header, file.bytes); !status.ok()) return status;
  }
  if (!has_index_) return absl::OkStatus();
  CheckpointIndex index = *layout.index;
  index.files = names_;
  SLUICE_ASSIGN_OR_RETURN(const std::string text, CheckpointIndexText(index));
  names_.emplace_back(kCheckpointIndexName);
  return Add(names_.back(), text, static_cast<int64_t>(text.size()));
}

std::vector<std::string> CheckpointFiles::temporaries() const {
  std::vector<std::string> temporaries;
  for (const AtomicFile& file : files_) temporaries.push_back(file.temporary());
  if (has_index_) temporaries.pop_back();
  return temporaries;
}

absl::Status CheckpointFiles::Commit() {
  absl::Status status = SyncAll();
  if (status.ok()) status = NameShards();
  if (status.ok()) {
    status = Publish();
  } else {
    Undo();
  }
  lock_.reset();
  return status;
}

// Whatever gets its name from here on is whole, after a crash of the system too.
absl::Status CheckpointFiles::SyncAll() {
  for (AtomicFile& file : files_) {
    if (absl::Status status = file.Sync(); !status.ok()) return status;
  }
  if (!lock_->held()) {
    const auto own = IdentifyPath(files_.back().temporary());
    if (!own.ok()) return own.status();
    published_ = *own;
  }
  return made_directory_ ? SyncDirectory(PathOf("..")) : absl::OkStatus();
}

// Nobody reads them yet: no index names them.
absl::Status CheckpointFiles::NameShards() {
  for (size_t i = 0; i + 1 < files_.size(); ++i) {
    if (absl::Status status = files_[i].CommitUnsynced(); !status.ok()) return status;
    appeared_.push_back(PathOf(names_[i]));
  }
  return SyncDirectory(directory_);
}

// A load goes by the index, and by model.safetensors where there is no index; other programs look
// for model.safetensors first. So each of the two steps changes what one of them reads, from all of
// the older checkpoint to all of the newer one.
absl::Status CheckpointFiles::Publish() {
  const std::string path = PathOf(names_.back());
  const std::string other = RivalPath();
  const bool replaces = Exists(path);
  absl::Status status = files_.back().CommitUnsynced();
  if (!status.ok()) {
    Undo();
    return status;
  }
  if (!replaces) appeared_.push_back(path);
  status = SyncDirectory(directory_);
  if (status.ok()) status = RemoveRival(other);
  if (!status.ok()) {
    if (!replaces && Undo()) return status;
    // The file that had the name is gone, or the new name does not go: there is no way back.
    const bool counts = has_index_ || !Exists(other);
    return counts ? InPlaceBut(status) : status;
  }
  made_directory_ = false;
  status = SyncDirectory(directory_);
  // Until the storage has the new names, a crash of the system may bring back the old ones.
  if (status.ok()) status = RemoveOlder();
  return status.ok() ? status : InPlaceBut(status);
}

absl::Status CheckpointFiles::RemoveRival(const std::string& path) const {
  if (lock_->held()) return Remove(path);
  SLUICE_ASSIGN_OR_RETURN(const bool removed, RemoveSame(path, rival_));
  if (removed) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "another save has made ", path, " meanwhile, on a file system that has no locks"));
}

absl::Status CheckpointFiles::RemoveOlder() const {
  const absl::StatusOr<std::vector<std::string>> older =
      List(directory_, [this](const std::string& name) {
        // Without a lock, what no index names may be another saver's.
        const bool may_be = lock_->held() || Contains(older_files_, name);
        return may_be && IsShardName(name) && !Contains(names_, name);
      });
  if (!older.ok()) return older.status();
  absl::Status status;
  for (const std::string& name : *older) status.Update(Remove(PathOf(name)));
  return status;
}

bool CheckpointFiles::Undo() {
  // The index, which was the last to appear, first: without it nobody is led to the others.
  for (size_t i = appeared_.size(); i-- > 0;) {
    const bool leads = appeared_[i] == PathOf(names_.back());
    if (lock_->held() || !leads) {
      const bool removed = unlink(appeared_[i].c_str()) == 0 || errno == ENOENT;
      if (!removed && leads) return false;
    } else if (!RemoveSame(appeared_[i], published_).ok()) {
      return false;
    }
  }
  appeared_.clear();
  return true;
}

}  // namespace sluice
