// What is in a directory without an index: lists it, reads all headers at once, and tells what they
// say.
#include "session/list_objects.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "device/device.h"
#include "session/backoff.h"
#include "storage/catalog_formats.h"
#include "storage/file_source.h"

namespace sluice {
namespace {

// What most headers fit in; the others are read once more, as long as they say they are.
constexpr int64_t kFirstBytes = 64 << 10;
// Memory for headers at once.
constexpr int64_t kHeaderBudgetBytes = int64_t{16} << 20;

struct Listed {
  std::string name;
  int64_t bytes = 0;
};

absl::StatusOr<std::vector<Listed>> List(const std::string& directory, ItemFormat format) {
  std::vector<Listed> files;
  std::error_code error;
  const std::string suffix = format == ItemFormat::kNpy           ? ".npy"
                             : format == ItemFormat::kSafetensors ? ".safetensors"
                                                                  : "";
  for (std::filesystem::directory_iterator at(directory, error), end; !error && at != end;
       at.increment(error)) {
    if (!at->is_regular_file(error) || error) continue;
    const std::string name = at->path().filename().string();
    if (at->path().extension() != suffix && !suffix.empty()) continue;
    files.push_back({name, static_cast<int64_t>(at->file_size(error))});
  }
  if (error) {
    return absl::NotFoundError(absl::StrCat("cannot list ", directory, ": ", error.message()));
  }
  if (files.empty()) {
    return absl::NotFoundError(
        absl::StrCat(directory, " has no files", suffix.empty() ? "" : " *", suffix));
  }
  std::sort(files.begin(), files.end(),
            [](const Listed& a, const Listed& b) { return a.name < b.name; });
  return files;
}

// Reads the first `bytes[i]` bytes of each file of `source`, many at a time.
absl::Status ReadFirst(Source* source, const std::vector<int64_t>& bytes,
                       std::vector<std::string>* texts) {
  const size_t files = bytes.size();
  const int64_t room = ReadRoom(
      0, std::max<int64_t>(1, *std::max_element(bytes.begin(), bytes.end())), kReadAlignment);
  const size_t lanes = static_cast<size_t>(
      std::clamp<int64_t>(kHeaderBudgetBytes / room, 1, static_cast<int64_t>(files)));
  absl::StatusOr<DeviceMemory> memory =
      MakeHostDevice()->AllocateStaging(lanes * static_cast<size_t>(room));
  if (!memory.ok()) return memory.status();
  std::vector<size_t> file_of_lane(lanes);
  std::vector<size_t> idle;
  for (size_t lane = lanes; lane-- > 0;) idle.push_back(lane);
  std::vector<ReadEvent> events(64);
  Backoff backoff;
  size_t next = 0;
  size_t under_way = 0;
  while (next < files || under_way > 0) {
    std::vector<ReadOp> ops;
    for (; next < files && !idle.empty(); ++next) {
      if (bytes[next] == 0) continue;
      const size_t lane = idle.back();
      idle.pop_back();
      file_of_lane[lane] = next;
      ops.push_back({.object = static_cast<int>(next),
                     .bytes = bytes[next],
                     .data = memory->data() + static_cast<int64_t>(lane) * room,
                     .cookie = lane});
    }
    under_way += ops.size();
    if (absl::Status status = source->Start(ops); !status.ok()) return status;
    const absl::StatusOr<int> count = source->Poll(absl::MakeSpan(events));
    if (!count.ok()) return count.status();
    for (int i = 0; i < *count; ++i) {
      const ReadEvent& event = events[static_cast<size_t>(i)];
      if (!event.status.ok()) return event.status;
      const size_t lane = static_cast<size_t>(event.cookie);
      const size_t file = file_of_lane[lane];
      const std::byte* const data = memory->data() + static_cast<int64_t>(lane) * room + event.skew;
      (*texts)[file].assign(reinterpret_cast<const char*>(data), static_cast<size_t>(bytes[file]));
      idle.push_back(lane);
      --under_way;
    }
    if (*count > 0) {
      backoff.Reset();
    } else if (under_way > 0) {
      backoff.Pause();
    }
  }
  return absl::OkStatus();
}

absl::Span<const std::byte> BytesOf(absl::string_view text) {
  return absl::MakeConstSpan(reinterpret_cast<const std::byte*>(text.data()), text.size());
}

absl::StatusOr<int64_t> HeaderBytes(ItemFormat format, const std::string& first, int64_t bytes) {
  return format == ItemFormat::kNpy ? NpyHeaderBytes(BytesOf(first), bytes)
                                    : SafetensorsHeaderBytes(BytesOf(first), bytes);
}

absl::Status AddObject(const StreamSource& source, const Listed& file, absl::string_view header,
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
  return absl::Status(status.code(), absl::StrCat(name, ": ", status.message()));
}

// The header of each file, and no more.
absl::StatusOr<std::vector<std::string>> ReadHeaders(const std::string& directory,
                                                     const std::vector<Listed>& files,
                                                     ItemFormat format) {
  std::vector<std::string> headers(files.size());
  if (format == ItemFormat::kRaw) return headers;
  std::vector<std::string> names;
  std::vector<int64_t> bytes;
  for (const Listed& file : files) {
    names.push_back(file.name);
    bytes.push_back(std::min(file.bytes, kFirstBytes));
  }
  // One source for both rounds, so that files stay open in between.
  absl::StatusOr<std::unique_ptr<Source>> source =
      MakeFileSource(directory, names, {.access = FileAccess::kBuffered});
  if (!source.ok()) return source.status();
  if (absl::Status s = ReadFirst(source->get(), bytes, &headers); !s.ok()) return s;
  bool longer = false;
  for (size_t i = 0; i < files.size(); ++i) {
    const absl::StatusOr<int64_t> header = HeaderBytes(format, headers[i], files[i].bytes);
    if (!header.ok()) return InFile(files[i].name, header.status());
    const bool more = *header > bytes[i];
    longer = longer || more;
    bytes[i] = more ? *header : 0;
    if (!more) headers[i].resize(static_cast<size_t>(*header));
  }
  if (longer) {
    if (absl::Status s = ReadFirst(source->get(), bytes, &headers); !s.ok()) return s;
  }
  return headers;
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

absl::StatusOr<std::string> ListObjects(const SourceAddress& address, const StreamSource& source) {
  const absl::StatusOr<std::vector<Listed>> files = List(address.place, source.format);
  if (!files.ok()) return files.status();
  const absl::StatusOr<std::vector<std::string>> headers =
      ReadHeaders(address.place, *files, source.format);
  if (!headers.ok()) return headers.status();
  std::string text;
  for (size_t i = 0; i < files->size(); ++i) {
    const Listed& file = (*files)[i];
    const std::string& header = (*headers)[i];
    absl::StrAppend(&text, file.bytes, " ", file.name.size(), " ", header.size(), "\n", file.name,
                    header);
  }
  return text;
}

absl::StatusOr<Catalog> ReadListing(absl::string_view listing, const StreamSource& source) {
  Catalog catalog;
  while (!listing.empty()) {
    Listed file;
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
