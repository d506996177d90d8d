// Headers are read many at a time, from descriptors that tell which file they are of.
#include "session/checkpoint/checkpoint_headers.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "session/checkpoint/checkpoint_catalog.h"
#include "session/shard/read_ranges.h"
#include "session/shard/read_text.h"
#include "tensor/error_text.h"
#include "tensor/quoted.h"

namespace sluice {
namespace {

// The metadata, with the id of the save, is at the begin of a header.
constexpr size_t kBeginningBytes = 4096;

absl::Status InFile(const std::string& name, const absl::Status& status) {
  return MakeError(status.code(), name, ": ", status);
}

absl::Span<const std::byte> BytesOf(const std::string& text) {
  return absl::MakeConstSpan(reinterpret_cast<const std::byte*>(text.data()), text.size());
}

// A clear word about files that are not there or too short, before anything is read.
absl::Status CheckPresent(const SourceAddress& address, const std::vector<std::string>& files,
                          const RetryOptions& retry, const WorkStop& stop,
                          absl::FunctionRef<absl::Status(size_t file, int64_t bytes)> check_bytes) {
  for (size_t i = 0; i < files.size(); ++i) {
    const std::string& file = files[i];
    absl::StatusOr<absl::optional<FileIdentity>> identity;
    absl::Status status = ReadWithRetries(file, retry, stop, [&] {
      identity = IdentifyPath(address.place + "/" + file);
      return identity.status();
    });
    if (!status.ok()) return status;
    if (!*identity) {
      return absl::NotFoundError(absl::StrCat("there is no ",
                                              QuotedPath(absl::StrCat(address.place, "/", file)),
                                              ", which holds tensors of the checkpoint"));
    }
    status = check_bytes(i, (*identity)->bytes);
    if (!status.ok()) return InFile(file, status);
  }
  return absl::OkStatus();
}

}  // namespace

OpenOptions OpenOptionsOf(const CheckpointOptions& options) {
  OpenOptions open;
  open.connections = options.connections;
  open.ca_file = options.ca_file;
  open.s3 = options.s3;
  return open;
}

FileStates NewFileStates(const SourceAddress& address, const std::vector<std::string>& files) {
  if (address.is_http()) return {nullptr, std::make_shared<HttpVersions>(files.size())};
  return {std::make_shared<FileIdentities>(files), nullptr};
}

FileStates FileStatesOf(const SourceAddress& address, const CheckpointCatalog& catalog) {
  if (address.is_http()) return {nullptr, std::make_shared<HttpVersions>(catalog.versions)};
  return {std::make_shared<FileIdentities>(catalog.files, catalog.identities), nullptr};
}

absl::StatusOr<std::unique_ptr<Source>> OpenFiles(const SourceAddress& address,
                                                  const std::vector<std::string>& files,
                                                  const CheckpointOptions& options,
                                                  int in_flight_max, const FileStates& states) {
  OpenOptions open = OpenOptionsOf(options);
  open.in_flight_max = in_flight_max;
  open.states = states;
  return OpenSource(address, files, open);
}

absl::StatusOr<std::unique_ptr<Source>> OpenForLooks(SourceAddress address,
                                                     const std::vector<std::string>& files,
                                                     const CheckpointOptions& options,
                                                     const FileStates& states) {
  if (address.scheme == "file") address.scheme = "buffered";
  return OpenFiles(address, files, options, kRangesAtOnceMax, states);
}

absl::StatusOr<CheckpointHeaders> ReadHeaders(const SourceAddress& address,
                                              const std::vector<std::string>& files,
                                              const CheckpointOptions& options,
                                              const WorkStop& stop) {
  const FileStates states = NewFileStates(address, files);
  const FileIdentities* const identities = states.identities.get();
  if (identities != nullptr) {
    SLUICE_RETURN_IF_ERROR(
        CheckPresent(address, files, options.retry, stop, [](size_t, int64_t bytes) {
          if (bytes >= kSafetensorsPrefixBytes) return absl::OkStatus();
          return SafetensorsHeaderBytes({}, bytes).status();
        }));
  }
  SLUICE_ASSIGN_OR_RETURN(std::unique_ptr<Source> source,
                          OpenForLooks(address, files, options, states));
  std::vector<RangeRead> ranges;
  for (size_t i = 0; i < files.size(); ++i) {
    ranges.push_back({static_cast<int>(i), 0, kSafetensorsPrefixBytes, ""});
  }
  absl::Status status =
      ReadRanges(source.get(), files, options.retry, stop, absl::MakeSpan(ranges));
  if (!status.ok()) return status;
  CheckpointHeaders read;
  std::vector<std::string> texts;
  for (size_t i = 0; i < files.size(); ++i) {
    int64_t file_bytes = -1;  // not known before all of it is read
    if (identities != nullptr) {
      read.identities.push_back(*identities->known(static_cast<int>(i)));
      file_bytes = read.identities.back().bytes;
    }
    const absl::StatusOr<int64_t> bytes =
        SafetensorsHeaderBytes(BytesOf(ranges[i].text), file_bytes);
    if (!bytes.ok()) return InFile(files[i], bytes.status());
    texts.push_back(std::move(ranges[i].text));
    ranges[i].offset = kSafetensorsPrefixBytes;
    ranges[i].bytes = *bytes - kSafetensorsPrefixBytes;
    if (ranges[i].bytes < 1) return absl::InvalidArgumentError(files[i] + ": an empty header");
    read.bytes += *bytes;
  }
  status = ReadRanges(source.get(), files, options.retry, stop, absl::MakeSpan(ranges));
  if (!status.ok()) return status;
  source.reset();  // looks at each file that it closes
  if (identities != nullptr && !identities->outcome().ok()) return identities->outcome();
  for (size_t i = 0; i < files.size(); ++i) {
    texts[i] += ranges[i].text;
    absl::StatusOr<SafetensorsHeader> header = ParseSafetensorsHeader(
        BytesOf(texts[i]), identities == nullptr ? -1 : read.identities[i].bytes);
    if (!header.ok()) return InFile(files[i], header.status());
    read.headers.push_back(*std::move(header));
    if (address.is_http()) read.beginnings.push_back(texts[i].substr(0, kBeginningBytes));
  }
  if (states.versions != nullptr) read.versions = *states.versions;
  return read;
}

absl::StatusOr<CheckpointCatalog> LookAtArrays(const SourceAddress& address,
                                               const StoredArrays& arrays,
                                               const CheckpointOptions& options,
                                               const WorkStop& stop) {
  const std::vector<std::string>& files = arrays.files;
  const FileStates states = NewFileStates(address, files);
  const FileIdentities* const identities = states.identities.get();
  const auto check_bytes = [&](size_t file, int64_t bytes) {
    if (bytes >= arrays.file_ends[file]) return absl::OkStatus();
    return absl::DataLossError(absl::StrCat("it has ", bytes, " bytes, and the catalog has arrays ",
                                            "up to byte ", arrays.file_ends[file]));
  };
  if (identities != nullptr) {
    SLUICE_RETURN_IF_ERROR(CheckPresent(address, files, options.retry, stop, check_bytes));
  }
  SLUICE_ASSIGN_OR_RETURN(std::unique_ptr<Source> source,
                          OpenForLooks(address, files, options, states));
  CheckpointCatalog catalog;
  std::vector<RangeRead> ranges;
  for (size_t i = 0; i < files.size(); ++i) {
    const int64_t bytes = std::min<int64_t>(kBeginningBytes, arrays.file_ends[i]);
    ranges.push_back({static_cast<int>(i), 0, bytes, ""});
    catalog.header_bytes += bytes;
  }
  SLUICE_RETURN_IF_ERROR(
      ReadRanges(source.get(), files, options.retry, stop, absl::MakeSpan(ranges)));
  source.reset();  // looks at each file that it closes
  if (identities != nullptr) SLUICE_RETURN_IF_ERROR(identities->outcome());
  for (size_t i = 0; i < files.size(); ++i) {
    if (identities != nullptr) {
      catalog.identities.push_back(*identities->known(static_cast<int>(i)));
      const absl::Status status = check_bytes(i, catalog.identities.back().bytes);
      if (!status.ok()) return InFile(files[i], status);
    } else {
      catalog.beginnings.push_back(std::move(ranges[i].text));
    }
  }
  if (states.versions != nullptr) catalog.versions = *states.versions;
  catalog.files = files;
  catalog.entries = arrays.entries;
  catalog.ignored = arrays.ignored;
  return catalog;
}

absl::Status CheckUnchanged(const SourceAddress& address, const CheckpointOptions& options,
                            const WorkStop& stop, CheckpointCatalog* catalog) {
  const std::vector<std::string>& files = catalog->files;
  SLUICE_ASSIGN_OR_RETURN(
      std::unique_ptr<Source> source,
      OpenFiles(address, files, options, kRangesAtOnceMax, FileStatesOf(address, *catalog)));
  std::vector<RangeRead> ranges;
  for (size_t i = 0; i < files.size(); ++i) {
    const auto bytes = static_cast<int64_t>(catalog->beginnings[i].size());
    ranges.push_back({static_cast<int>(i), 0, bytes, ""});
    catalog->header_bytes += bytes;
  }
  SLUICE_RETURN_IF_ERROR(
      ReadRanges(source.get(), files, options.retry, stop, absl::MakeSpan(ranges)));
  for (size_t i = 0; i < files.size(); ++i) {
    if (ranges[i].text == catalog->beginnings[i]) continue;
    return absl::DataLossError(absl::StrCat(files[i], " was replaced while it was read"));
  }
  return absl::OkStatus();
}

}  // namespace sluice
