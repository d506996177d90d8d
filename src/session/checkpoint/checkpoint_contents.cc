// An index is fetched, or a directory listed.
#include "session/checkpoint_contents.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "session/backoff.h"
#include "session/checkpoint_headers.h"
#include "session/checkpoint_names.h"
#include "session/clock.h"
#include "storage/checkpoint_index.h"
#include "storage/http_fetch.h"
#include "storage/object_name.h"
#include "storage/source_check.h"
#include "storage/whole_file.h"

namespace sluice {
namespace {

std::string IndexPath(const SourceAddress& address) {
  return absl::StrCat(address.place, "/", kCheckpointIndexName);
}

void SleepUnless(const WorkStop& stop, absl::Duration time) {
  const int64_t end_ns = MonotonicNs() + absl::ToInt64Nanoseconds(time);
  constexpr timespec kStep = {0, 10'000'000};
  while (MonotonicNs() < end_ns && !stop.load(std::memory_order_relaxed)) {
    nanosleep(&kStep, nullptr);
  }
}

absl::StatusOr<std::string> FetchIndex(const SourceAddress& address,
                                       const CheckpointOptions& options, const WorkStop& stop) {
  const std::string url = absl::StrCat(address.place, kCheckpointIndexName);
  const int64_t bytes_max = CheckpointIndexLimits().text_bytes;
  const HttpOptions http = HttpOptionsOf(options);
  absl::StatusOr<std::string> text = FetchHttpObject(url, bytes_max, http, &stop);
  absl::Duration pause = options.retry.backoff;
  for (int i = 1; i < options.retry.attempts_max && absl::IsUnavailable(text.status()); ++i) {
    SleepUnless(stop, std::exchange(pause, 2 * pause));
    if (stop.load(std::memory_order_relaxed)) break;
    text = FetchHttpObject(url, bytes_max, http, &stop);
  }
  return text;
}

absl::StatusOr<CheckpointContents> LookOverHttp(const SourceAddress& address,
                                                const CheckpointOptions& options,
                                                const WorkStop& stop) {
  CheckpointContents contents;
  absl::StatusOr<std::string> text = FetchIndex(address, options, stop);
  if (text.ok()) {
    contents.index_text = *std::move(text);
    return contents;
  }
  // A store that may not be listed answers 403 for what it does not have.
  if (absl::IsPermissionDenied(text.status())) {
    contents.index_refused = text.status();
  } else if (!absl::IsNotFound(text.status())) {
    return text.status();
  }
  contents.files.emplace_back(kCheckpointFileName);
  return contents;
}

absl::StatusOr<std::vector<std::string>> ListFiles(const std::string& directory) {
  std::vector<std::string> names;
  bool has_shards = false;
  std::error_code error;
  for (std::filesystem::directory_iterator at(directory, error), end; !error && at != end;
       at.increment(error)) {
    const std::filesystem::path& path = at->path();
    const std::string name = path.filename().string();
    if (path.extension() != ".safetensors" || name[0] == '.') continue;
    if (name == kCheckpointFileName) return std::vector<std::string>{name};
    if (IsShardName(name)) {
      has_shards = true;
      continue;
    }
    names.push_back(name);
    if (absl::Status status = CheckObjectName(name); !status.ok()) return status;
  }
  if (error) return ReadErrnoStatus(error.value(), absl::StrCat("cannot list ", directory));
  if (names.empty()) {
    return absl::NotFoundError(absl::StrCat(
        directory, " has no ", kCheckpointIndexName,
        has_shards ? ", without which its shards are not a checkpoint: a save that did not end"
                   : " and no *.safetensors"));
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

absl::StatusOr<CheckpointContents> LookForCheckpoint(const SourceAddress& address,
                                                     const CheckpointOptions& options,
                                                     const WorkStop& stop) {
  if (address.is_http()) return LookOverHttp(address, options, stop);
  CheckpointContents contents;
  absl::StatusOr<WholeFile> index =
      ReadWholeFile(IndexPath(address), CheckpointIndexLimits().text_bytes);
  if (index.ok()) {
    contents.index_text = std::move(index->text);
    contents.index_file = index->identity;
    return contents;
  }
  if (!absl::IsNotFound(index.status())) return index.status();
  absl::StatusOr<std::vector<std::string>> files = ListFiles(address.place);
  if (!files.ok()) return files.status();
  contents.files = *std::move(files);
  return contents;
}

absl::StatusOr<bool> HasSameIndex(const SourceAddress& address,
                                  const CheckpointContents& contents) {
  if (address.is_http()) return true;
  const absl::StatusOr<absl::optional<FileIdentity>> now = IdentifyPath(IndexPath(address));
  if (!now.ok()) return now.status();
  return *now == contents.index_file;
}

}  // namespace sluice
