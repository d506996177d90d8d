// One object after the other, and then the index.
#include "shards/make_shards.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "storage/file/atomic_file.h"
#include "storage/format/npy.h"
#include "storage/format/safetensors.h"
#include "storage/format/shard_index.h"
#include "tensor/check.h"
#include "workload/shard_fill.h"

namespace sluice::bench {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kDataAlignment = 4096;

absl::Status FileError(absl::string_view what, const std::string& path,
                       const std::error_code& error) {
  return absl::UnknownError(absl::StrCat("cannot ", what, " ", path, ": ", error.message()));
}

absl::Status PrepareDirectory(const ShardsPlan& plan) {
  std::error_code error;
  fs::create_directories(plan.directory, error);
  if (error) return FileError("make", plan.directory, error);
  const bool is_empty = fs::is_empty(plan.directory, error);
  if (error) return FileError("list", plan.directory, error);
  if (!is_empty && !plan.force) {
    return absl::AlreadyExistsError(
        absl::StrCat(plan.directory, " is not empty; --force writes into it all the same"));
  }
  const std::string index = absl::StrCat(plan.directory, "/", kShardIndexName);
  fs::remove(index, error);
  return error ? FileError("remove", index, error) : absl::OkStatus();
}

struct ObjectItems {
  int64_t first;
  int64_t count;
};

class Maker {
 public:
  Maker(const ShardsPlan& plan, ShardFill fill)
      : plan_(plan), fill_(std::move(fill)), type_({plan.type, {}}) {
    type_.shape = {plan.item_bytes / ElementBytes(plan.type)};
  }

  absl::StatusOr<ShardsMade> Make() {
    ShardsMade made;
    for (int64_t first = 0; first < plan_.items; first += plan_.items_per_object) {
      const ObjectItems items = {first, std::min(plan_.items_per_object, plan_.items - first)};
      absl::Status status = MakeObject(made.objects, items);
      if (!status.ok()) return status;
      made.bytes += catalog_.objects().back().bytes;
      ++made.objects;
    }
    made.items = catalog_.items();
    const auto text = ShardIndexText(plan_.format, catalog_);
    if (!text.ok()) return text.status();
    absl::Status status =
        WriteFileAtomically(absl::StrCat(plan_.directory, "/", kShardIndexName), *text);
    if (!status.ok()) return status;
    return made;
  }

 private:
  std::string NameOf(int64_t object) const {
    const char* suffix = plan_.format == ShardFormat::kRaw   ? "bin"
                         : plan_.format == ShardFormat::kNpy ? "npy"
                                                             : "safetensors";
    return absl::StrFormat("shard-%06d.%s", object, suffix);
  }

  absl::StatusOr<std::string> HeaderOf(ObjectItems items) const {
    if (plan_.format == ShardFormat::kRaw) return std::string();
    if (plan_.format == ShardFormat::kNpy) {
      return NpyHeaderText(plan_.type, {items.count, type_.shape[0]}, kDataAlignment);
    }
    std::vector<SafetensorsSpec> specs;
    for (int64_t i = items.first; i < items.first + items.count; ++i) {
      specs.push_back({absl::StrFormat("item-%012d", i), plan_.type, type_.shape});
    }
    auto layout = LayOutSafetensors(specs, {{"format", "pt"}}, kDataAlignment);
    if (!layout.ok()) return layout.status();
    return std::move(layout->header);
  }

  absl::Status MakeObject(int64_t object, ObjectItems items) {
    const std::string name = NameOf(object);
    const auto header = HeaderOf(items);
    if (!header.ok()) return header.status();
    auto file = AtomicFile::Create(absl::StrCat(plan_.directory, "/", name));
    if (!file.ok()) return file.status();
    absl::Status status = file->WriteAt(0, *header);
    const auto data_begin = static_cast<int64_t>(header->size());
    if (status.ok()) status = WriteData(items, data_begin, &*file);
    // The index, which is synced, comes after all objects; a crash of the system in between leaves
    // a directory without one.
    if (status.ok()) status = file->Commit();
    if (!status.ok()) return status;
    const int64_t data_bytes = items.count * plan_.item_bytes;
    status = catalog_.AddObject(name, data_begin + data_bytes);
    if (!status.ok()) return status;
    return catalog_.AddItems(items.count, data_begin, plan_.item_bytes, plan_.item_bytes, &type_);
  }

  // Items one after the other, through a buffer that is written when it is full.
  absl::Status WriteData(ObjectItems items, int64_t offset, AtomicFile* file) {
    constexpr size_t kBufferBytes = size_t{1} << 20;
    buffer_.resize(kBufferBytes);
    size_t used = 0;
    const auto write = [&]() {
      absl::Status status = file->WriteAt(offset, absl::MakeConstSpan(buffer_).subspan(0, used));
      offset += static_cast<int64_t>(std::exchange(used, 0));
      return status;
    };
    for (int64_t i = items.first; i < items.first + items.count; ++i) {
      for (int64_t done = 0; done < plan_.item_bytes;) {
        // Elements are of 1, 2, 4 or 8 bytes, and so is the buffer's end.
        const size_t size =
            std::min(kBufferBytes - used, static_cast<size_t>(plan_.item_bytes - done));
        fill_.FillItem(i, done, absl::MakeSpan(buffer_).subspan(used, size));
        used += size;
        done += static_cast<int64_t>(size);
        if (used < kBufferBytes) continue;
        if (absl::Status status = write(); !status.ok()) return status;
      }
    }
    return write();
  }

  const ShardsPlan& plan_;
  const ShardFill fill_;
  ItemType type_;
  Catalog catalog_;
  std::vector<std::byte> buffer_;
};

}  // namespace

absl::StatusOr<ShardsMade> MakeShards(const ShardsPlan& plan) {
  SLUICE_CHECK(plan.items > 0 && plan.item_bytes > 0 && plan.items_per_object > 0,
               "a plan of nothing");
  auto fill = ShardFill::Make(plan.type, plan.seed);
  if (!fill.ok()) return fill.status();
  if (absl::Status status = PrepareDirectory(plan); !status.ok()) return status;
  return Maker(plan, *std::move(fill)).Make();
}

}  // namespace sluice::bench
