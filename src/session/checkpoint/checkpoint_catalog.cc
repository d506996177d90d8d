// Reads the places of tensors out of an index and headers.
#include "session/checkpoint/checkpoint_catalog.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/types/span.h"
#include "session/base/text_list.h"
#include "session/checkpoint/checkpoint_contents.h"
#include "session/checkpoint/checkpoint_fit.h"
#include "session/checkpoint/checkpoint_headers.h"
#include "session/checkpoint/checkpoint_names.h"
#include "storage/format/checkpoint_index.h"
#include "storage/format/safetensors.h"
#include "tensor/error_text.h"

namespace sluice {
namespace {

absl::Status InFile(absl::string_view name, const absl::Status& status) {
  return MakeError(status.code(), name, ": ", status);
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
      return MakeError(absl::StatusCode::kInvalidArgument, TensorInWords(tensor.name), " is in ",
                       files[static_cast<size_t>(other->second.file)], " and in ", files[i],
                       ", and no index says which one counts");
    }
  }
  return found;
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
    const SafetensorsTensor& there = *at->second.tensor;
    if (!there.unreadable.empty()) {
      return MakeError(absl::StatusCode::kInvalidArgument, TensorInWords(tensor.name), ": ",
                       there.unreadable);
    }
    SLUICE_RETURN_IF_ERROR(
        CheckFit(tensor, there.shape, ElementName(there.type), DTypeOf(there.type)));
    catalog->entries.push_back({at->second.file, *DTypeOf(there.type), there.begin});
  }
  return CheckNoneMissing(missing, found);
}

// Each once: a tensor may have several destinations.
absl::flat_hash_set<absl::string_view> NamesOf(absl::Span<const CheckpointTensor> tensors) {
  absl::flat_hash_set<absl::string_view> names;
  for (const CheckpointTensor& tensor : tensors) names.insert(tensor.name);
  return names;
}

// Takes the files of the wanted tensors from the index: only these files are looked at.
absl::Status TakeIndex(const std::string& text, absl::Span<const CheckpointTensor> tensors,
                       CheckpointCatalog* catalog, absl::flat_hash_map<std::string, int>* file_of,
                       std::string* save_id) {
  const absl::StatusOr<CheckpointIndex> index = ParseCheckpointIndex(text);
  if (!index.ok()) return InFile(kCheckpointIndexName, index.status());
  *save_id = index->save_id;
  const absl::flat_hash_set<absl::string_view> wanted = NamesOf(tensors);
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
  if (missing.empty()) return absl::OkStatus();
  std::vector<absl::string_view> there;
  for (const CheckpointIndex::Entry& entry : index->tensors) there.push_back(entry.tensor);
  return MissingError(missing, there);
}

// The files of one save have one id, which their index has, too.
absl::Status CheckSaveIds(const std::string& save_id, const std::vector<std::string>& files,
                          const std::vector<SafetensorsHeader>& headers) {
  if (save_id.empty()) return absl::OkStatus();
  for (size_t i = 0; i < files.size(); ++i) {
    const SafetensorsMetadata& metadata = headers[i].metadata;
    const auto found = std::find_if(metadata.begin(), metadata.end(),
                                    [](const auto& entry) { return entry.first == kSaveIdKey; });
    if (found != metadata.end() && found->second == save_id) continue;
    return absl::DataLossError(absl::StrCat(
        files[i], " is not of the save that ", kCheckpointIndexName, " is of, by their ",
        kSaveIdKey, ": the checkpoint was being replaced, or is a mixture"));
  }
  return absl::OkStatus();
}

// `is_gone`: whether a file that was listed is not there any more.
absl::StatusOr<CheckpointCatalog> FindIn(const CheckpointContents& contents,
                                         const SourceAddress& address,
                                         absl::Span<const CheckpointTensor> tensors,
                                         const CheckpointOptions& options, const WorkStop& stop,
                                         bool* is_gone) {
  CheckpointCatalog catalog;
  absl::flat_hash_map<std::string, int> file_of;
  std::string save_id;
  catalog.files = contents.files;
  if (contents.index_text) {
    SLUICE_RETURN_IF_ERROR(TakeIndex(*contents.index_text, tensors, &catalog, &file_of, &save_id));
    catalog.header_bytes += static_cast<int64_t>(contents.index_text->size());
  }
  absl::StatusOr<CheckpointHeaders> read = ReadHeaders(address, catalog.files, options, stop);
  *is_gone = absl::IsNotFound(read.status());
  if (*is_gone || absl::IsPermissionDenied(read.status())) {
    return contents.index_refused.ok() ? read.status() : contents.index_refused;
  }
  if (!read.ok()) return read.status();
  catalog.header_bytes += read->bytes;
  catalog.identities = std::move(read->identities);
  catalog.versions = std::move(read->versions);
  catalog.beginnings = std::move(read->beginnings);
  if (absl::Status status = CheckSaveIds(save_id, catalog.files, read->headers); !status.ok()) {
    return status;
  }
  SLUICE_ASSIGN_OR_RETURN(
      const FoundByName found,
      ByName(catalog.files, read->headers, contents.index_text ? &file_of : nullptr));
  if (absl::Status status = Resolve(tensors, found, &catalog); !status.ok()) return status;
  if (!contents.index_text) {
    catalog.ignored = static_cast<int64_t>(found.size() - NamesOf(tensors).size());
  }
  return catalog;
}

// An index has all names and texts; headers are read where there is none.
absl::StatusOr<CheckpointInfo> InfoIn(const CheckpointContents& contents,
                                      const SourceAddress& address,
                                      const CheckpointOptions& options, const WorkStop& stop,
                                      bool* is_gone) {
  CheckpointInfo info;
  if (contents.index_text) {
    absl::StatusOr<CheckpointIndex> index = ParseCheckpointIndex(*contents.index_text);
    if (!index.ok()) return InFile(kCheckpointIndexName, index.status());
    for (CheckpointIndex::Entry& entry : index->tensors) {
      info.tensors.push_back(std::move(entry.tensor));
    }
    info.metadata = std::move(index->metadata);
    return info;
  }
  absl::StatusOr<CheckpointHeaders> read = ReadHeaders(address, contents.files, options, stop);
  *is_gone = absl::IsNotFound(read.status());
  if (!read.ok()) return read.status();
  for (SafetensorsHeader& header : read->headers) {
    for (SafetensorsTensor& tensor : header.tensors) info.tensors.push_back(std::move(tensor.name));
  }
  std::sort(info.tensors.begin(), info.tensors.end());
  info.metadata = std::move(read->headers.front().metadata);
  return info;
}

// All tensors, by name. An index decides where a tensor is in several files.
absl::StatusOr<std::vector<SafetensorsTensor>> AllIn(const CheckpointContents& contents,
                                                     const SourceAddress& address,
                                                     const CheckpointOptions& options,
                                                     const WorkStop& stop, bool* is_gone) {
  std::vector<std::string> files = contents.files;
  absl::flat_hash_map<std::string, int> file_of;
  if (contents.index_text) {
    absl::StatusOr<CheckpointIndex> index = ParseCheckpointIndex(*contents.index_text);
    if (!index.ok()) return InFile(kCheckpointIndexName, index.status());
    for (const CheckpointIndex::Entry& entry : index->tensors) {
      file_of.insert({entry.tensor, entry.file});
    }
    files = std::move(index->files);
  }
  absl::StatusOr<CheckpointHeaders> read = ReadHeaders(address, files, options, stop);
  *is_gone = absl::IsNotFound(read.status());
  if (!read.ok()) return read.status();
  SLUICE_ASSIGN_OR_RETURN(const FoundByName found,
                          ByName(files, read->headers, contents.index_text ? &file_of : nullptr));
  std::vector<SafetensorsTensor> all;
  for (const auto& [name, place] : found) all.push_back(*place.tensor);
  std::sort(all.begin(), all.end(),
            [](const SafetensorsTensor& a, const SafetensorsTensor& b) { return a.name < b.name; });
  return all;
}

// Looks at the place, and again where a save has ended meanwhile.
template <typename Found>
absl::StatusOr<Found> FindSteadily(
    SourceAddress address, const CheckpointOptions& options, const WorkStop& stop,
    absl::FunctionRef<absl::StatusOr<Found>(const SourceAddress&, const CheckpointContents&, bool*)>
        find) {
  if (std::string file = TakeFileName(&address); !file.empty()) {
    CheckpointContents contents;
    contents.files.push_back(std::move(file));
    bool is_gone = false;
    return find(address, contents, &is_gone);
  }
  constexpr int kLooksMax = 16;
  for (int look = 0; look < kLooksMax; ++look) {
    const absl::StatusOr<CheckpointContents> contents = LookForCheckpoint(address, options, stop);
    if (!contents.ok() && !absl::IsNotFound(contents.status())) return contents.status();
    bool is_gone = false;
    absl::StatusOr<Found> found = contents.ok() ? find(address, *contents, &is_gone)
                                                : absl::StatusOr<Found>(contents.status());
    SLUICE_ASSIGN_OR_RETURN(
        const bool same,
        HasSameIndex(address, contents.ok() ? *contents : CheckpointContents(), options, stop));
    // An index has come and gone meanwhile.
    const bool was_replaced =
        contents.ok() && !contents->index_text && !address.is_http() && is_gone;
    if ((same && !was_replaced) || stop.load(std::memory_order_relaxed)) return found;
  }
  return absl::UnavailableError(absl::StrCat(
      address.place, " gets one checkpoint after the other, while a load looks for one"));
}

absl::Status BadText() {
  return MakeError(absl::StatusCode::kInternal, "what ", RankInWords(0),
                   " told of the checkpoint makes no sense");
}

}  // namespace

absl::StatusOr<CheckpointCatalog> FindTensors(const SourceAddress& address,
                                              absl::Span<const CheckpointTensor> tensors,
                                              const CheckpointOptions& options,
                                              const WorkStop& stop) {
  return FindSteadily<CheckpointCatalog>(
      address, options, stop,
      [&](const SourceAddress& where, const CheckpointContents& contents, bool* is_gone) {
        return FindIn(contents, where, tensors, options, stop, is_gone);
      });
}

absl::StatusOr<CheckpointInfo> FindInfo(const SourceAddress& address,
                                        const CheckpointOptions& options, const WorkStop& stop) {
  return FindSteadily<CheckpointInfo>(
      address, options, stop,
      [&](const SourceAddress& where, const CheckpointContents& contents, bool* is_gone) {
        return InfoIn(contents, where, options, stop, is_gone);
      });
}

absl::StatusOr<std::vector<SafetensorsTensor>> FindAllTensors(const SourceAddress& address,
                                                              const CheckpointOptions& options,
                                                              const WorkStop& stop) {
  return FindSteadily<std::vector<SafetensorsTensor>>(
      address, options, stop,
      [&](const SourceAddress& where, const CheckpointContents& contents, bool* is_gone) {
        return AllIn(contents, where, options, stop, is_gone);
      });
}

std::string InfoText(const CheckpointInfo& info) {
  std::vector<std::string> metadata;
  for (const auto& [key, text] : info.metadata) {
    metadata.push_back(key);
    metadata.push_back(text);
  }
  return JoinTexts({JoinTexts(info.tensors), JoinTexts(metadata)});
}

absl::StatusOr<CheckpointInfo> ParseInfoText(absl::string_view text) {
  const absl::StatusOr<std::vector<std::string>> parts = SplitTexts(text);
  if (!parts.ok() || parts->size() != 2) return BadText();
  absl::StatusOr<std::vector<std::string>> tensors = SplitTexts((*parts)[0]);
  absl::StatusOr<std::vector<std::string>> metadata = SplitTexts((*parts)[1]);
  if (!tensors.ok() || !metadata.ok() || metadata->size() % 2 != 0) return BadText();
  CheckpointInfo info;
  info.tensors = *std::move(tensors);
  for (size_t i = 0; i < metadata->size(); i += 2) {
    info.metadata.emplace_back(std::move((*metadata)[i]), std::move((*metadata)[i + 1]));
  }
  return info;
}

std::string CatalogText(const CheckpointCatalog& catalog) {
  std::string entries;
  for (const CheckpointCatalog::Entry& entry : catalog.entries) {
    absl::StrAppend(&entries, entry.file, " ", static_cast<int>(entry.dtype), " ", entry.begin,
                    "\n");
  }
  std::vector<std::string> identities;
  for (const FileIdentity& identity : catalog.identities) {
    identities.push_back(IdentityText(identity));
  }
  std::vector<std::string> versions;
  for (const HttpVersion& version : catalog.versions) {
    versions.push_back(version.etag);
    versions.push_back(version.last_modified);
  }
  return JoinTexts({absl::StrCat(catalog.ignored, " ", catalog.header_bytes, " 0"),
                    JoinTexts(catalog.files), JoinTexts(identities), JoinTexts(versions), entries});
}

absl::StatusOr<CheckpointCatalog> ParseCatalogText(absl::string_view text) {
  const auto three = [](absl::string_view line, int64_t* a, int64_t* b, int64_t* c) {
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
    return words.size() == 3 && absl::SimpleAtoi(words[0], a) && absl::SimpleAtoi(words[1], b) &&
           absl::SimpleAtoi(words[2], c);
  };
  const absl::StatusOr<std::vector<std::string>> parts = SplitTexts(text);
  if (!parts.ok() || parts->size() != 5) return BadText();
  CheckpointCatalog catalog;
  int64_t zero = 0;
  if (!three((*parts)[0], &catalog.ignored, &catalog.header_bytes, &zero)) return BadText();
  absl::StatusOr<std::vector<std::string>> files = SplitTexts((*parts)[1]);
  const absl::StatusOr<std::vector<std::string>> identities = SplitTexts((*parts)[2]);
  absl::StatusOr<std::vector<std::string>> versions = SplitTexts((*parts)[3]);
  if (!files.ok() || !identities.ok() || !versions.ok()) return BadText();
  catalog.files = *std::move(files);
  for (const std::string& identity : *identities) {
    const absl::optional<FileIdentity> parsed = ParseIdentityText(identity);
    if (!parsed) return BadText();
    catalog.identities.push_back(*parsed);
  }
  if (!catalog.identities.empty() && catalog.identities.size() != catalog.files.size())
    return BadText();
  if (!versions->empty() && versions->size() != 2 * catalog.files.size()) return BadText();
  for (size_t i = 0; i < versions->size(); i += 2) {
    catalog.versions.push_back({std::move((*versions)[i]), std::move((*versions)[i + 1])});
  }
  const std::vector<absl::string_view> lines = absl::StrSplit((*parts)[4], '\n', absl::SkipEmpty());
  for (const absl::string_view line : lines) {
    int64_t file = 0;
    int64_t dtype = 0;
    int64_t begin = 0;
    if (!three(line, &file, &dtype, &begin)) return BadText();
    catalog.entries.push_back({static_cast<int>(file), static_cast<DType>(dtype), begin});
  }
  return catalog;
}

}  // namespace sluice
