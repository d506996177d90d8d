// Lists a directory, has the headers of its files read, and tells what they say.
#include "session/stream/list_objects.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "session/shard/read_ranges.h"
#include "session/shard/read_text.h"
#include "session/stream/object_headers.h"
#include "session/stream/stream_source.h"
#include "storage/format/catalog_formats.h"
#include "storage/listed_file.h"
#include "storage/open/open_source.h"
#include "storage/source_check.h"
#include "tensor/error_text.h"
#include "tensor/quoted.h"

namespace sluice {
namespace {

std::string SuffixOf(ItemFormat format) {
  return format == ItemFormat::kNpy           ? ".npy"
         : format == ItemFormat::kSafetensors ? ".safetensors"
                                              : "";
}

absl::StatusOr<std::vector<ObjectFile>> List(const std::string& directory,
                                             const std::string& suffix, const WorkStop& stop) {
  std::vector<ObjectFile> files;
  std::error_code error;
  for (std::filesystem::directory_iterator at(directory, error), end; !error && at != end;
       at.increment(error)) {
    if (stop.load(std::memory_order_relaxed)) return absl::CancelledError("the list is not needed");
    SLUICE_ASSIGN_OR_RETURN(const bool counts, CountsAsData(*at, suffix));
    if (!counts) continue;
    const auto bytes = static_cast<int64_t>(at->file_size(error));
    files.push_back({at->path().filename().string(), bytes});
  }
  if (error)
    return ReadErrnoStatus(error.value(), absl::StrCat("cannot list ", QuotedPath(directory)));
  if (files.empty()) {
    return absl::NotFoundError(
        absl::StrCat(QuotedPath(directory), " has no files", suffix.empty() ? "" : " *", suffix));
  }
  std::sort(files.begin(), files.end(),
            [](const ObjectFile& a, const ObjectFile& b) { return a.name < b.name; });
  return files;
}

absl::Span<const std::byte> BytesOf(absl::string_view text) {
  return absl::MakeConstSpan(reinterpret_cast<const std::byte*>(text.data()), text.size());
}

absl::Status AddObject(const StreamSource& source, const ObjectFile& file, absl::string_view header,
                       Catalog* catalog) {
  if (source.format == ItemFormat::kRaw) {
    return AddRawObject(file.name, file.bytes, source.item_bytes, nullptr, catalog);
  }
  if (source.format == ItemFormat::kNpy) {
    const absl::StatusOr<NpyHeader> read = ParseNpyHeader(BytesOf(header), file.bytes);
    return read.ok() ? AddNpyObject(file.name, *read, catalog) : read.status();
  }
  const absl::StatusOr<SafetensorsHeader> read =
      ParseSafetensorsHeader(BytesOf(header), file.bytes);
  return read.ok() ? AddSafetensorsObject(file.name, *read, catalog) : read.status();
}

absl::Status InFile(const std::string& name, const absl::Status& status) {
  return MakeError(status.code(), name, ": ", status);
}

absl::StatusOr<std::vector<std::string>> ReadHeaders(const SourceAddress& address,
                                                     const std::vector<ObjectFile>& files,
                                                     const StreamSource& source,
                                                     const RetryOptions& retry,
                                                     const WorkStop& stop) {
  if (source.format == ItemFormat::kRaw) return std::vector<std::string>(files.size());
  std::vector<std::string> names;
  names.reserve(files.size());
  for (const ObjectFile& file : files) names.push_back(file.name);
  OpenOptions open = OpenOptionsOf(source);
  open.in_flight_max = kRangesAtOnceMax;
  SourceAddress plain = address;
  if (!address.is_s3()) plain.scheme = "buffered";
  SLUICE_ASSIGN_OR_RETURN(std::unique_ptr<Source> reader,
                          OpenSource(plain, std::move(names), open));
  return ReadObjectHeaders(reader.get(), files, source.format, retry, stop);
}

// The number before the next `end`; -1 if there is none.
int64_t TakeNumber(absl::string_view* text, char end) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(*text, absl::MaxSplits(end, 1));
  *text = parts.second;
  int64_t number = -1;
  return absl::SimpleAtoi(parts.first, &number) ? number : -1;
}

}  // namespace

absl::StatusOr<std::vector<ObjectFile>> ListFiles(const SourceAddress& address,
                                                  const std::string& suffix,
                                                  const OpenOptions& options,
                                                  const RetryOptions& retry, const WorkStop& stop) {
  std::vector<ObjectFile> files;
  if (address.is_s3()) {
    SLUICE_ASSIGN_OR_RETURN(const std::vector<S3Object> objects,
                            ListStore(address, suffix, options, retry, stop));
    files.reserve(objects.size());
    for (const S3Object& object : objects) files.push_back({object.name, object.bytes});
    return files;
  }
  if (address.is_http()) {
    return absl::InvalidArgumentError(
        absl::StrCat(address.place, ": an HTTP server cannot be listed"));
  }
  SLUICE_RETURN_IF_ERROR(
      ReadWithRetries(QuotedPath(address.place), retry, stop, [&]() -> absl::Status {
        SLUICE_ASSIGN_OR_RETURN(files, List(address.place, suffix, stop));
        return absl::OkStatus();
      }));
  return files;
}

absl::StatusOr<std::string> ListObjects(const SourceAddress& address, const StreamSource& source,
                                        const RetryOptions& retry, const WorkStop& stop) {
  SLUICE_ASSIGN_OR_RETURN(
      const std::vector<ObjectFile> files,
      ListFiles(address, SuffixOf(source.format), OpenOptionsOf(source), retry, stop));
  SLUICE_ASSIGN_OR_RETURN(const std::vector<std::string> headers,
                          ReadHeaders(address, files, source, retry, stop));
  std::string text;
  for (size_t i = 0; i < files.size(); ++i) {
    const ObjectFile& file = files[i];
    const std::string& header = headers[i];
    absl::StrAppend(&text, file.bytes, " ", file.name.size(), " ", header.size(), "\n", file.name,
                    header);
  }
  return text;
}

absl::StatusOr<Catalog> ReadListing(absl::string_view listing, const StreamSource& source) {
  Catalog catalog;
  while (!listing.empty()) {
    ObjectFile file;
    file.bytes = TakeNumber(&listing, ' ');
    const int64_t name_bytes = TakeNumber(&listing, ' ');
    const int64_t header_bytes = TakeNumber(&listing, '\n');
    const int64_t rest = static_cast<int64_t>(listing.size());
    if (file.bytes < 0 || name_bytes < 0 || header_bytes < 0 || name_bytes > rest ||
        header_bytes > rest - name_bytes) {
      return absl::InternalError("the list of a directory's files is damaged");
    }
    file.name = std::string(listing.substr(0, static_cast<size_t>(name_bytes)));
    listing.remove_prefix(static_cast<size_t>(name_bytes));
    const absl::string_view header = listing.substr(0, static_cast<size_t>(header_bytes));
    listing.remove_prefix(header.size());
    absl::Status status = AddObject(source, file, header, &catalog);
    if (!status.ok()) return InFile(file.name, status);
  }
  return catalog;
}

}  // namespace sluice
