// From an index and headers to places of tensors.
#include "session/checkpoint_catalog.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "session/read_ranges.h"
#include "storage/checkpoint_index.h"
#include "storage/file_source.h"
#include "storage/http_fetch.h"
#include "storage/http_source.h"
#include "storage/mmap_source.h"
#include "storage/object_name.h"
#include "storage/safetensors.h"
#include "tensor/cast.h"

namespace sluice {
namespace {

HttpOptions HttpOptionsOf(const CheckpointOptions& options) {
  HttpOptions http;
  http.connections_per_host = options.connections;
  http.connections_max = options.connections;
  http.ca_file = options.ca_file;
  http.timeout_ns = absl::ToInt64Nanoseconds(options.retry.request_timeout);
  return http;
}

// The index; NotFound if there is none.
absl::StatusOr<std::string> FetchIndexText(const SourceAddress& address,
                                           const CheckpointOptions& options) {
  const int64_t bytes_max = CheckpointIndexLimits().text_bytes;
  if (address.is_http()) {
    return FetchHttpObject(absl::StrCat(address.place, kCheckpointIndexName), bytes_max,
                           HttpOptionsOf(options));
  }
  const std::string path = absl::StrCat(address.place, "/", kCheckpointIndexName);
  std::error_code error;
  if (!std::filesystem::exists(path, error)) {
    return absl::NotFoundError(absl::StrCat("there is no ", path));
  }
  std::ifstream file(path, std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(file), {});
  if (!file || file.bad()) return absl::UnavailableError(absl::StrCat("cannot read ", path));
  return text;
}

absl::StatusOr<std::vector<std::string>> ListFiles(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator at(directory, error), end; !error && at != end;
       at.increment(error)) {
    const std::filesystem::path& path = at->path();
    if (path.extension() != ".safetensors" || path.filename().string()[0] == '.') continue;
    names.push_back(path.filename().string());
    if (absl::Status status = CheckObjectName(names.back()); !status.ok()) return status;
  }
  if (error) {
    return absl::NotFoundError(absl::StrCat("cannot list ", directory, ": ", error.message()));
  }
  if (names.empty()) {
    return absl::NotFoundError(
        absl::StrCat(directory, " has no ", kCheckpointIndexName, " and no *.safetensors"));
  }
  std::sort(names.begin(), names.end());
  return names;
}

absl::Status InFile(const std::string& name, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(name, ": ", status.message()));
}

absl::Span<const std::byte> BytesOf(const std::string& text) {
  return absl::MakeConstSpan(reinterpret_cast<const std::byte*>(text.data()), text.size());
}

// Of a file in a directory; -1 if that is not known before it is read.
absl::StatusOr<int64_t> SizeOf(const SourceAddress& address, const std::string& name) {
  if (address.is_http()) return -1;
  std::error_code error;
  const std::uintmax_t bytes = std::filesystem::file_size(address.place + "/" + name, error);
  if (!error) return static_cast<int64_t>(bytes);
  return absl::NotFoundError(
      absl::StrCat("cannot read ", address.place, "/", name,
                   ", which holds tensors of the checkpoint: ", error.message()));
}

// Two reads of each file: how long its header is, and the header.
absl::StatusOr<std::vector<SafetensorsHeader>> ReadHeaders(const SourceAddress& address,
                                                           const std::vector<std::string>& files,
                                                           const CheckpointOptions& options,
                                                           absl::FunctionRef<void()> pause,
                                                           int64_t* bytes_read) {
  SourceAddress plain = address;
  if (plain.scheme == "file") plain.scheme = "buffered";
  absl::StatusOr<std::unique_ptr<Source>> source = OpenFiles(plain, files, options, 64);
  if (!source.ok()) return source.status();
  std::vector<int64_t> sizes;
  std::vector<RangeRead> ranges;
  for (const std::string& file : files) {
    const absl::StatusOr<int64_t> bytes = SizeOf(address, file);
    if (!bytes.ok()) return bytes.status();
    sizes.push_back(*bytes);
    if (*bytes >= 0 && *bytes < kSafetensorsPrefixBytes) {
      return InFile(file, SafetensorsHeaderBytes({}, *bytes).status());
    }
    ranges.push_back({static_cast<int>(ranges.size()), 0, kSafetensorsPrefixBytes, ""});
  }
  absl::Status status =
      ReadRanges(source->get(), files, options.retry, pause, absl::MakeSpan(ranges));
  if (!status.ok()) return status;
  std::vector<std::string> prefixes;
  for (size_t i = 0; i < files.size(); ++i) {
    const absl::StatusOr<int64_t> bytes = SafetensorsHeaderBytes(BytesOf(ranges[i].text), sizes[i]);
    if (!bytes.ok()) return InFile(files[i], bytes.status());
    prefixes.push_back(std::move(ranges[i].text));
    ranges[i].offset = kSafetensorsPrefixBytes;
    ranges[i].bytes = *bytes - kSafetensorsPrefixBytes;
    if (ranges[i].bytes < 1) return absl::InvalidArgumentError(files[i] + ": an empty header");
    *bytes_read += *bytes;
  }
  status = ReadRanges(source->get(), files, options.retry, pause, absl::MakeSpan(ranges));
  if (!status.ok()) return status;
  std::vector<SafetensorsHeader> headers;
  for (size_t i = 0; i < files.size(); ++i) {
    absl::StatusOr<SafetensorsHeader> header =
        ParseSafetensorsHeader(BytesOf(prefixes[i] + ranges[i].text), sizes[i]);
    if (!header.ok()) return InFile(files[i], header.status());
    headers.push_back(*std::move(header));
  }
  return headers;
}

struct Found {
  int file = 0;
  const SafetensorsTensor* tensor = nullptr;
};
using FoundByName = absl::flat_hash_map<absl::string_view, Found>;

absl::StatusOr<FoundByName> ByName(const std::vector<std::string>& files,
                                   const std::vector<SafetensorsHeader>& headers,
                                   const absl::flat_hash_map<std::string, int>* file_of) {
  FoundByName found;
  for (size_t i = 0; i < files.size(); ++i) {
    for (const SafetensorsTensor& tensor : headers[i].tensors) {
      if (file_of != nullptr) {
        // The index decides where a tensor lies that is in several files.
        const auto listed = file_of->find(tensor.name);
        if (listed == file_of->end() || listed->second != static_cast<int>(i)) continue;
      }
      const auto [other, added] = found.insert({tensor.name, {static_cast<int>(i), &tensor}});
      if (added) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "tensor '", tensor.name, "' is in ", files[static_cast<size_t>(other->second.file)],
          " and in ", files[i], ", and no index says which one counts"));
    }
  }
  return found;
}

std::string ShapeText(absl::Span<const int64_t> shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ","), "]");
}

absl::Status CheckFit(const CheckpointTensor& wanted, const SafetensorsTensor& found) {
  const std::vector<int64_t> shape = found.shape.empty() ? std::vector<int64_t>{1} : found.shape;
  if (shape != wanted.shape) {
    return absl::InvalidArgumentError(absl::StrCat("tensor '", wanted.name, "' has shape ",
                                                   ShapeText(shape), " in the checkpoint, not ",
                                                   ShapeText(wanted.shape)));
  }
  const std::optional<DType> dtype = DTypeOf(found.type);
  if (dtype && CastExists(*dtype, wanted.dtype)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("tensor '", wanted.name, "' is of ", ElementName(found.type),
                   " in the checkpoint, which cannot be cast to ", DTypeName(wanted.dtype)));
}

absl::Status MissingError(const std::vector<std::string>& missing) {
  constexpr size_t kNamed = 3;
  std::string names;
  for (size_t i = 0; i < std::min(kNamed, missing.size()); ++i) {
    absl::StrAppend(&names, i > 0 ? ", " : "", "'", missing[i], "'");
  }
  if (missing.size() > kNamed) absl::StrAppend(&names, ", ...");
  return absl::NotFoundError(
      absl::StrCat("the checkpoint lacks ", missing.size(), " tensors: ", names));
}

absl::Status Resolve(absl::Span<const CheckpointTensor> tensors, const FoundByName& found,
                     CheckpointCatalog* catalog) {
  std::vector<std::string> missing;
  for (const CheckpointTensor& tensor : tensors) {
    const auto at = found.find(tensor.name);
    if (at == found.end()) {
      missing.push_back(tensor.name);
      continue;
    }
    if (absl::Status status = CheckFit(tensor, *at->second.tensor); !status.ok()) return status;
    catalog->entries.push_back(
        {at->second.file, *DTypeOf(at->second.tensor->type), at->second.tensor->begin});
  }
  return missing.empty() ? absl::OkStatus() : MissingError(missing);
}

// What the index says of the tensors that are wanted: their files alone are looked at.
absl::Status TakeIndex(const std::string& text, absl::Span<const CheckpointTensor> tensors,
                       CheckpointCatalog* catalog, absl::flat_hash_map<std::string, int>* file_of) {
  const absl::StatusOr<CheckpointIndex> index = ParseCheckpointIndex(text);
  if (!index.ok()) return InFile(std::string(kCheckpointIndexName), index.status());
  absl::flat_hash_set<absl::string_view> wanted;
  for (const CheckpointTensor& tensor : tensors) wanted.insert(tensor.name);
  std::vector<int> number(index->files.size(), -1);
  for (const CheckpointIndex::Entry& entry : index->tensors) {
    if (!wanted.contains(entry.tensor)) continue;
    int& file = number[static_cast<size_t>(entry.file)];
    if (file < 0) {
      file = static_cast<int>(catalog->files.size());
      catalog->files.push_back(index->files[static_cast<size_t>(entry.file)]);
    }
    file_of->insert({entry.tensor, file});
  }
  catalog->ignored = static_cast<int64_t>(index->tensors.size() - file_of->size());
  std::vector<std::string> missing;
  for (const CheckpointTensor& tensor : tensors) {
    if (!file_of->contains(tensor.name)) missing.push_back(tensor.name);
  }
  return missing.empty() ? absl::OkStatus() : MissingError(missing);
}

}  // namespace

absl::StatusOr<CheckpointCatalog> FindTensors(const SourceAddress& address,
                                              absl::Span<const CheckpointTensor> tensors,
                                              const CheckpointOptions& options,
                                              absl::FunctionRef<void()> pause) {
  CheckpointCatalog catalog;
  absl::flat_hash_map<std::string, int> file_of;
  const absl::StatusOr<std::string> index = FetchIndexText(address, options);
  if (index.ok()) {
    absl::Status status = TakeIndex(*index, tensors, &catalog, &file_of);
    if (!status.ok()) return status;
    catalog.header_bytes += static_cast<int64_t>(index->size());
  } else if (!absl::IsNotFound(index.status())) {
    return index.status();
  } else if (address.is_http()) {
    catalog.files.emplace_back(kCheckpointFileName);
  } else {
    absl::StatusOr<std::vector<std::string>> files = ListFiles(address.place);
    if (!files.ok()) return files.status();
    catalog.files = *std::move(files);
  }
  const absl::StatusOr<std::vector<SafetensorsHeader>> headers =
      ReadHeaders(address, catalog.files, options, pause, &catalog.header_bytes);
  if (!headers.ok()) return headers.status();
  const absl::StatusOr<FoundByName> found =
      ByName(catalog.files, *headers, index.ok() ? &file_of : nullptr);
  if (!found.ok()) return found.status();
  if (absl::Status status = Resolve(tensors, *found, &catalog); !status.ok()) return status;
  if (!index.ok()) catalog.ignored = static_cast<int64_t>(found->size() - tensors.size());
  return catalog;
}

std::string CatalogText(const CheckpointCatalog& catalog) {
  std::string text =
      absl::StrCat(catalog.files.size(), " ", catalog.ignored, " ", catalog.header_bytes, "\n");
  for (const std::string& file : catalog.files) absl::StrAppend(&text, file, "\n");
  for (const CheckpointCatalog::Entry& entry : catalog.entries) {
    absl::StrAppend(&text, entry.file, " ", static_cast<int>(entry.dtype), " ", entry.begin, "\n");
  }
  return text;
}

absl::StatusOr<CheckpointCatalog> ParseCatalogText(absl::string_view text) {
  CheckpointCatalog catalog;
  const std::vector<absl::string_view> lines = absl::StrSplit(text, '\n', absl::SkipEmpty());
  const auto three = [](absl::string_view line, int64_t* a, int64_t* b, int64_t* c) {
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
    return words.size() == 3 && absl::SimpleAtoi(words[0], a) && absl::SimpleAtoi(words[1], b) &&
           absl::SimpleAtoi(words[2], c);
  };
  int64_t files = 0;
  bool good = !lines.empty() && three(lines[0], &files, &catalog.ignored, &catalog.header_bytes);
  for (size_t i = 1; good && i < lines.size(); ++i) {
    if (static_cast<int64_t>(i) <= files) {
      catalog.files.emplace_back(lines[i]);
      continue;
    }
    int64_t file = 0;
    int64_t dtype = 0;
    int64_t begin = 0;
    good = three(lines[i], &file, &dtype, &begin);
    catalog.entries.push_back({static_cast<int>(file), static_cast<DType>(dtype), begin});
  }
  if (!good) return absl::InternalError("what rank 0 told of the checkpoint makes no sense");
  return catalog;
}

absl::StatusOr<std::unique_ptr<Source>> OpenFiles(const SourceAddress& address,
                                                  const std::vector<std::string>& files,
                                                  const CheckpointOptions& options,
                                                  int in_flight_max) {
  if (address.is_http()) return MakeHttpSource(address.place, files, HttpOptionsOf(options));
  if (address.scheme == "mmap") return MakeMmapSource(address.place, files, {});
  FileSourceOptions file;
  file.access = address.scheme == "file" ? FileAccess::kDirect : FileAccess::kBuffered;
  file.in_flight_max = in_flight_max;
  return MakeFileSource(address.place, files, file);
}

}  // namespace sluice
