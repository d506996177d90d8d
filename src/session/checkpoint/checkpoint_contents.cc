// An index is fetched, or a directory listed.
#include "session/checkpoint/checkpoint_contents.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "session/checkpoint/checkpoint_headers.h"
#include "session/checkpoint/checkpoint_names.h"
#include "session/shard/read_text.h"
#include "storage/format/checkpoint_index.h"
#include "storage/listed_file.h"
#include "storage/open/whole_object.h"
#include "storage/source_check.h"
#include "tensor/error_text.h"
#include "tensor/quoted.h"

namespace sluice {
namespace {

absl::StatusOr<WholeObject> FetchIndex(const SourceAddress& address,
                                       const CheckpointOptions& options, const WorkStop& stop) {
  return FetchText(address, kCheckpointIndexName, CheckpointIndexLimits().text_bytes,
                   OpenOptionsOf(options), options.retry, stop);
}

absl::Status NothingCounts(absl::string_view place, bool has_shards) {
  return absl::NotFoundError(absl::StrCat(
      place, " has no ", kCheckpointIndexName,
      has_shards ? ", without which its shards are not a checkpoint: a save that did not end"
                 : " and no *.safetensors"));
}

// The same choice as that of ListFiles. `objects` are in the order of names.
absl::StatusOr<std::vector<std::string>> FilesThatCount(const std::vector<S3Object>& objects,
                                                        absl::string_view place) {
  std::vector<std::string> names;
  for (const S3Object& object : objects) {
    if (object.name == kCheckpointFileName) return std::vector<std::string>{object.name};
    if (!IsShardName(object.name)) names.push_back(object.name);
  }
  if (names.empty()) return NothingCounts(place, true);
  return names;
}

absl::StatusOr<CheckpointContents> LookOverHttp(const SourceAddress& address,
                                                const CheckpointOptions& options,
                                                const WorkStop& stop) {
  CheckpointContents contents;
  absl::StatusOr<WholeObject> index = FetchIndex(address, options, stop);
  if (index.ok()) {
    contents.index_text = std::move(index->text);
    return contents;
  }
  // A store that may not be listed answers 403 for what it does not have.
  if (absl::IsPermissionDenied(index.status())) {
    contents.index_refused = index.status();
  } else if (!absl::IsNotFound(index.status())) {
    return index.status();
  }
  if (!address.is_s3()) {
    contents.files.emplace_back(kCheckpointFileName);
    return contents;
  }
  absl::StatusOr<std::vector<S3Object>> objects =
      ListStore(address, ".safetensors", OpenOptionsOf(options), options.retry, stop);
  if (objects.ok()) {
    SLUICE_ASSIGN_OR_RETURN(contents.files, FilesThatCount(*objects, address.place));
    return contents;
  }
  // A caller that may not list may still read.
  if (!absl::IsPermissionDenied(objects.status())) return objects.status();
  contents.files.emplace_back(kCheckpointFileName);
  return contents;
}

absl::StatusOr<std::vector<std::string>> ListFiles(const std::string& directory) {
  std::vector<std::string> names;
  bool has_shards = false;
  std::error_code error;
  // First: where it is there, nothing else counts, in whatever order names come.
  const std::string whole(kCheckpointFileName);
  const std::filesystem::directory_entry entry(absl::StrCat(directory, "/", whole), error);
  SLUICE_ASSIGN_OR_RETURN(const bool is_whole, CountsAsData(entry, ""));
  if (is_whole) return std::vector<std::string>{whole};
  error.clear();
  for (std::filesystem::directory_iterator at(directory, error), end; !error && at != end;
       at.increment(error)) {
    SLUICE_ASSIGN_OR_RETURN(const bool counts, CountsAsData(*at, ".safetensors"));
    if (!counts) continue;
    const std::string name = at->path().filename().string();
    if (IsShardName(name)) {
      has_shards = true;
      continue;
    }
    names.push_back(name);
  }
  if (error) {
    absl::Status status =
        ReadErrnoStatus(error.value(), absl::StrCat("cannot list ", QuotedPath(directory)));
    if (error != std::errc::no_such_file_or_directory) return status;
    return MakeError(
        status.code(), status,
        ". A checkpoint of the Hugging Face hub is fetched before, by snapshot_download");
  }
  if (names.empty()) return NothingCounts(QuotedPath(directory), has_shards);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

absl::StatusOr<CheckpointContents> LookForCheckpoint(const SourceAddress& address,
                                                     const CheckpointOptions& options,
                                                     const WorkStop& stop) {
  if (address.is_http()) return LookOverHttp(address, options, stop);
  CheckpointContents contents;
  std::error_code failed;
  if (std::filesystem::is_regular_file(address.place, failed)) {
    return absl::InvalidArgumentError(
        absl::StrCat(QuotedPath(address.place),
                     " is a file: a checkpoint is a *.safetensors file, or a directory with such"));
  }
  absl::StatusOr<WholeObject> index = FetchIndex(address, options, stop);
  if (index.ok()) {
    contents.index_text = std::move(index->text);
    contents.index_file = index->identity;
    return contents;
  }
  if (!absl::IsNotFound(index.status())) return index.status();
  // A link that leads nowhere is no missing index: other files are not what it stands for.
  std::error_code gone;
  const std::filesystem::directory_entry entry(ObjectPath(address, kCheckpointIndexName), gone);
  if (const auto counts = CountsAsData(entry, ""); !counts.ok()) return counts.status();
  SLUICE_RETURN_IF_ERROR(ReadWithRetries(QuotedPath(address.place), options.retry, stop, [&] {
    absl::StatusOr<std::vector<std::string>> files = ListFiles(address.place);
    if (!files.ok()) return files.status();
    contents.files = *std::move(files);
    return absl::OkStatus();
  }));
  return contents;
}

absl::StatusOr<bool> HasSameIndex(const SourceAddress& address, const CheckpointContents& contents,
                                  const CheckpointOptions& options, const WorkStop& stop) {
  if (address.is_http()) return true;
  absl::StatusOr<absl::optional<FileIdentity>> now;
  SLUICE_RETURN_IF_ERROR(ReadWithRetries(kCheckpointIndexName, options.retry, stop, [&] {
    now = IdentifyPath(ObjectPath(address, kCheckpointIndexName));
    return now.status();
  }));
  return *now == contents.index_file;
}

}  // namespace sluice
