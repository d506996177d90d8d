// One object after the other, and then the index.
#include "shards/make_shards.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <limits>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "job/flags.h"
#include "job/help.h"
#include "sluice/status.h"
#include "storage/file/atomic_file.h"
#include "storage/format/npy.h"
#include "storage/format/safetensors.h"
#include "storage/format/shard_index.h"
#include "tensor/check.h"
#include "workload/json_input.h"
#include "workload/numbers.h"
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
      SLUICE_RETURN_IF_ERROR(MakeObject(made.objects, items));
      made.bytes += catalog_.objects().back().bytes;
      ++made.objects;
    }
    made.items = catalog_.items();
    SLUICE_ASSIGN_OR_RETURN(const auto text, ShardIndexText(plan_.format, catalog_));
    SLUICE_RETURN_IF_ERROR(
        WriteFileAtomically(absl::StrCat(plan_.directory, "/", kShardIndexName), text));
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
    SLUICE_ASSIGN_OR_RETURN(auto layout,
                            LayOutSafetensors(specs, {{"format", "pt"}}, kDataAlignment));
    return std::move(layout.header);
  }

  absl::Status MakeObject(int64_t object, ObjectItems items) {
    const std::string name = NameOf(object);
    SLUICE_ASSIGN_OR_RETURN(const auto header, HeaderOf(items));
    SLUICE_ASSIGN_OR_RETURN(auto file,
                            AtomicFile::Create(absl::StrCat(plan_.directory, "/", name)));
    absl::Status status = file.WriteAt(0, header);
    const auto data_begin = static_cast<int64_t>(header.size());
    if (status.ok()) status = WriteData(items, data_begin, &file);
    // The index, which is synced, comes after all objects; a crash of the system in between leaves
    // a directory without one.
    if (status.ok()) status = file.Commit();
    if (!status.ok()) return status;
    const int64_t data_bytes = items.count * plan_.item_bytes;
    SLUICE_RETURN_IF_ERROR(catalog_.AddObject(name, data_begin + data_bytes));
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
        SLUICE_RETURN_IF_ERROR(write());
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

void AddShardsFlags(CLI::App* app, ShardsOptions* o) {
  app->add_option("--make", o->format, "format of the objects: raw, npy or safetensors")
      ->required();
  app->add_option("--dir", o->directory, "directory to write to; made if it is not there")
      ->required();
  app->add_option("--items", o->items, "items in all")
      ->required()
      ->check(CLI::Range(int64_t{1}, kMostShardItems));
  app->add_option("--item-bytes", o->item_bytes, "bytes of an item, e.g. 150528 or 1M")->required();
  OrAuto(app->add_option("--items-per-object", o->items_per_object,
                         "items of an object, the last one may have fewer [auto: as many as make "
                         "64M]")
             ->check(CLI::Range(int64_t{0}, kMostShardItems)));
  app->add_option("--seed", o->seed, "part of the formula that fills the items [0]");
  app->add_option("--dtype", o->dtype, "elements of an item: u8, i16, f16, bf16, f32, ... [u8]");
  AddSwitch(app, "--force", &o->force,
            "write into a directory that is not empty: files of the same names are replaced, "
            "others stay");
  app->add_option("-J,--json", o->json_file, "write the results here, also on failure");
  SetHelp(app,
          "build/bin/sluice-bench shards --make raw --dir /tmp/shards --items 64 --item-bytes 1M "
          "--force");
}

absl::StatusOr<ShardsPlan> ParseShards(const ShardsOptions& options) {
  if (!options.flags.ok()) return options.flags;
  ShardsPlan plan;
  SLUICE_ASSIGN_OR_RETURN(const auto format, Prefixed("--make", ParseShardFormat(options.format)));
  SLUICE_ASSIGN_OR_RETURN(const auto type, Prefixed("--dtype", ParseElementType(options.dtype)));
  SLUICE_ASSIGN_OR_RETURN(const auto item_bytes,
                          Prefixed("--item-bytes", ParseBytes(options.item_bytes)));
  plan.format = format;
  plan.type = type;
  plan.directory = options.directory;
  plan.items = options.items;
  plan.item_bytes = item_bytes;
  plan.seed = options.seed;
  plan.force = options.force;
  if (item_bytes < 1 || item_bytes % ElementBytes(type) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--item-bytes: ", item_bytes, " bytes are no whole elements of ",
                     ElementName(type), ", which have ", ElementBytes(type)));
  }
  if (item_bytes > std::numeric_limits<int64_t>::max() / 4 / options.items) {
    return absl::InvalidArgumentError("--items times --item-bytes does not fit 61 bits");
  }
  constexpr int64_t kObjectBytes = int64_t{64} << 20;
  plan.items_per_object = options.items_per_object > 0
                              ? options.items_per_object
                              : std::max(int64_t{1}, kObjectBytes / item_bytes);
  if (plan.objects() > kMostShardObjects) {
    return absl::InvalidArgumentError(absl::StrCat("--items-per-object: ", plan.objects(),
                                                   " objects are more than ", kMostShardObjects));
  }
  if (format == ShardFormat::kSafetensors && plan.items_per_object > kMostTensorsPerObject) {
    return absl::InvalidArgumentError(
        absl::StrCat("--items-per-object: a safetensors object has a tensor per item, at most ",
                     kMostTensorsPerObject, " of them here"));
  }
  if (format == ShardFormat::kNpy && NpyDescr(type).empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--dtype: a .npy object cannot hold ", ElementName(type)));
  }
  return plan;
}

absl::StatusOr<ShardsMade> MakeShards(const ShardsPlan& plan) {
  SLUICE_CHECK(plan.items > 0 && plan.item_bytes > 0 && plan.items_per_object > 0,
               "a plan of nothing");
  SLUICE_ASSIGN_OR_RETURN(auto fill, ShardFill::Make(plan.type, plan.seed));
  SLUICE_RETURN_IF_ERROR(PrepareDirectory(plan));
  return Maker(plan, std::move(fill)).Make();
}

}  // namespace sluice::bench
