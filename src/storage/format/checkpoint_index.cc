// Reading and writing the index of a checkpoint.
#include "storage/format/checkpoint_index.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "storage/format/json_events.h"
#include "storage/object_name.h"
#include "tensor/check.h"
#include "tensor/error_text.h"
#include "tensor/quoted.h"

namespace sluice {
namespace {

class IndexListener final : public JsonListener {
 public:
  IndexListener(const CheckpointIndexLimits& limits, CheckpointIndex* index)
      : limits_(limits), index_(index) {}

  absl::StatusOr<Answer> Begin(const JsonPath& path, JsonKind kind) override {
    const int depth = path.depth();
    const bool is_known =
        depth == 0 || (depth == 1 && (path.key(0) == "weight_map" || path.key(0) == "metadata"));
    if (is_known) {
      if (kind != JsonKind::kObject) return WrongKind(path, "an object", kind);
      has_map_ = has_map_ || (depth == 1 && path.key(0) == "weight_map");
      return Answer::kRead;
    }
    if (InMap(path)) return WrongKind(path, "a string", kind);
    if (IsTotal(path)) return WrongKind(path, "an integer", kind);
    if (IsSaveId(path)) return WrongKind(path, "a string", kind);
    return Answer::kSkip;
  }

  absl::Status End(const JsonPath& path) override {
    if (path.depth() > 0 || has_map_) return absl::OkStatus();
    return absl::InvalidArgumentError("there is no \"weight_map\"");
  }

  absl::Status Scalar(const JsonPath& path, const JsonScalar& value) override {
    if (path.depth() == 0) return WrongKind(path, "an object", value.kind);
    if (InMap(path)) return Tensor(path, value);
    if (IsTotal(path)) return Total(path, value);
    if (IsSaveId(path)) return SaveId(path, value);
    if (InMetadata(path) && value.kind == JsonKind::kString) return Text(path, value);
    const bool is_container = path.depth() == 1 && path.key(0) == "weight_map";
    return is_container ? WrongKind(path, "an object", value.kind) : absl::OkStatus();
  }

 private:
  static bool InMap(const JsonPath& path) {
    return path.depth() == 2 && path.key(0) == "weight_map";
  }
  static bool InMetadata(const JsonPath& path) {
    return path.depth() == 2 && path.key(0) == "metadata";
  }
  static bool IsTotal(const JsonPath& path) {
    return InMetadata(path) && path.key(1) == kTotalSizeKey;
  }
  static bool IsSaveId(const JsonPath& path) {
    return InMetadata(path) && path.key(1) == kSaveIdKey;
  }

  absl::Status Text(const JsonPath& path, const JsonScalar& value) {
    SLUICE_ASSIGN_OR_RETURN(auto text, StringAt(path, value));
    index_->metadata.emplace_back(path.key(1), std::move(text));
    return absl::OkStatus();
  }

  absl::Status SaveId(const JsonPath& path, const JsonScalar& value) {
    SLUICE_ASSIGN_OR_RETURN(index_->save_id, StringAt(path, value));
    return absl::OkStatus();
  }

  // Some writers divide, and so write a whole number with a fraction of 0.
  absl::Status Total(const JsonPath& path, const JsonScalar& value) {
    constexpr double kMostExact = 9007199254740992.0;  // 2^53
    if (value.kind == JsonKind::kNumber && value.number >= 0 && value.number <= kMostExact &&
        value.number == std::floor(value.number)) {
      index_->total_bytes = static_cast<int64_t>(value.number);
      return absl::OkStatus();
    }
    SLUICE_ASSIGN_OR_RETURN(index_->total_bytes, IntegerAt(path, value));
    return absl::OkStatus();
  }

  absl::Status Tensor(const JsonPath& path, const JsonScalar& value) {
    const std::string& name = path.key(1);
    if (name.empty()) return absl::InvalidArgumentError("a tensor has an empty name");
    if (static_cast<int64_t>(index_->tensors.size()) >= limits_.tensors) {
      return absl::InvalidArgumentError(absl::StrCat("more than ", limits_.tensors, " tensors"));
    }
    SLUICE_ASSIGN_OR_RETURN(auto file, StringAt(path, value));
    const auto [found, is_new] = files_.try_emplace(file, static_cast<int>(index_->files.size()));
    if (is_new) {
      if (absl::Status status = CheckObjectName(file); !status.ok()) {
        return MakeError(absl::StatusCode::kInvalidArgument, TensorInWords(name, Quoted(name)),
                         ": ", status);
      }
      index_->files.push_back(std::move(file));
    }
    index_->tensors.push_back({name, found->second});
    return absl::OkStatus();
  }

  const CheckpointIndexLimits& limits_;
  CheckpointIndex* index_;
  absl::flat_hash_map<std::string, int> files_;
  bool has_map_ = false;
};

bool TensorLess(const CheckpointIndex::Entry& a, const CheckpointIndex::Entry& b) {
  return a.tensor < b.tensor;
}

void Sort(CheckpointIndex* index) {
  std::vector<int> order(index->files.size());
  std::iota(order.begin(), order.end(), 0);
  const auto file = [&](int i) -> std::string& { return index->files[static_cast<size_t>(i)]; };
  std::sort(order.begin(), order.end(), [&](int a, int b) { return file(a) < file(b); });
  std::vector<int> place(order.size());
  std::vector<std::string> files;
  for (const int old : order) {
    place[static_cast<size_t>(old)] = static_cast<int>(files.size());
    files.push_back(std::move(file(old)));
  }
  index->files = std::move(files);
  for (auto& entry : index->tensors) entry.file = place[static_cast<size_t>(entry.file)];
  std::sort(index->tensors.begin(), index->tensors.end(), TensorLess);
}

}  // namespace

absl::StatusOr<CheckpointIndex> ParseCheckpointIndex(absl::string_view text,
                                                     const CheckpointIndexLimits& limits) {
  CheckpointIndex index;
  IndexListener listener(limits, &index);
  const JsonLimits json = {.text_bytes = limits.text_bytes};
  if (absl::Status status = ReadJson(text, json, &listener); !status.ok()) {
    return MakeError(absl::StatusCode::kInvalidArgument, "checkpoint index: ", status);
  }
  Sort(&index);
  return index;
}

absl::StatusOr<std::string> CheckpointIndexText(const CheckpointIndex& index) {
  std::vector<CheckpointIndex::Entry> tensors = index.tensors;
  std::sort(tensors.begin(), tensors.end(), TensorLess);
  std::vector<std::string> metadata;
  if (index.total_bytes >= 0) {
    metadata.push_back(absl::StrCat("\"", kTotalSizeKey, "\": ", index.total_bytes));
  }
  auto texts = index.metadata;
  if (!index.save_id.empty()) texts.emplace(texts.begin(), kSaveIdKey, index.save_id);
  for (const auto& [key, value] : texts) {
    SLUICE_ASSIGN_OR_RETURN(const auto name, JsonQuoted(key));
    SLUICE_ASSIGN_OR_RETURN(const auto quoted, JsonQuoted(value));
    metadata.push_back(absl::StrCat(name, ": ", quoted));
  }
  std::string text = "{\n  \"metadata\": {";
  if (!metadata.empty()) {
    absl::StrAppend(&text, "\n    ", absl::StrJoin(metadata, ",\n    "), "\n  ");
  }
  absl::StrAppend(&text, "},\n  \"weight_map\": {");
  for (size_t i = 0; i < tensors.size(); ++i) {
    const CheckpointIndex::Entry& entry = tensors[i];
    if (entry.tensor.empty()) return absl::InvalidArgumentError("a tensor has an empty name");
    if (i > 0 && entry.tensor == tensors[i - 1].tensor) {
      return MakeError(absl::StatusCode::kInvalidArgument,
                       TensorInWords(entry.tensor, Quoted(entry.tensor)), " is there twice");
    }
    const auto place = static_cast<size_t>(entry.file);
    SLUICE_CHECK(place < index.files.size(), "an entry names no file");
    const std::string& file = index.files[place];
    SLUICE_RETURN_IF_ERROR(CheckObjectName(file));
    const auto key = JsonQuoted(entry.tensor);
    const auto value = JsonQuoted(file);
    if (!key.ok()) return key.status();
    if (!value.ok()) return value.status();
    absl::StrAppend(&text, i > 0 ? ",\n    " : "\n    ", *key, ": ", *value);
  }
  absl::StrAppend(&text, tensors.empty() ? "}\n}\n" : "\n  }\n}\n");
  return text;
}

}  // namespace sluice
