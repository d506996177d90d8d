// Reading index.json.
#include "storage/format/shard_index.h"

#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "storage/format/json_events.h"
#include "tensor/error_text.h"

namespace sluice {
namespace {

// Levels of the text: the outermost object, its members, the objects of "objects", their members,
// the ranges, their two numbers.
constexpr int kMember = 1;
constexpr int kObject = 2;
constexpr int kObjectMember = 3;
constexpr int kRange = 4;
constexpr int kRangeNumber = 5;

class ShardIndexListener final : public JsonListener {
 public:
  ShardIndexListener(const ShardIndexLimits& limits, ShardIndex* index)
      : limits_(limits), index_(index) {}

  absl::StatusOr<Answer> Begin(const JsonPath& path, JsonKind kind) override {
    switch (path.depth()) {
      case 0:
        if (kind != JsonKind::kObject) return WrongKind(path, "an object", kind);
        return Answer::kRead;
      case kMember:
        return BeginMember(path, kind);
      case kObject:
        if (InShape(path)) return WrongKind(path, "an integer", kind);
        if (kind != JsonKind::kObject) return WrongKind(path, "an object", kind);
        object_ = {};
        return Answer::kRead;
      case kObjectMember:
        return BeginObjectMember(path, kind);
      case kRange:
        if (kind != JsonKind::kList) return WrongKind(path, "a list of offset and bytes", kind);
        range_.clear();
        return Answer::kRead;
      default:
        return WrongKind(path, "an integer", kind);
    }
  }

  absl::Status End(const JsonPath& path) override {
    switch (path.depth()) {
      case 0:
        return Finish();
      case kObject:
        return EndObject(path);
      case kRange:
        return EndRange(path);
      default:
        return absl::OkStatus();
    }
  }

  absl::Status Scalar(const JsonPath& path, const JsonScalar& value) override {
    switch (path.depth()) {
      case kMember:
        return Member(path, value);
      case kObject:
        if (InShape(path)) return ShapeNumber(path, value);
        return WrongKind(path, "an object", value.kind);
      case kObjectMember:
        return ObjectMember(path, value);
      case kRange:
        return WrongKind(path, "a list of offset and bytes", value.kind);
      case kRangeNumber:
        // A third number is one too many; more need not be kept.
        return range_.size() < 3 ? Append(path, value, &range_) : absl::OkStatus();
      default:
        return WrongKind(path, "an object", value.kind);
    }
  }

 private:
  struct Object {
    std::optional<std::string> name;
    std::optional<int64_t> bytes;
    std::optional<int64_t> items;
    std::optional<int64_t> offset;
    std::optional<int64_t> item_bytes;
    std::optional<int64_t> stride;
    bool has_ranges = false;
    std::vector<std::array<int64_t, 2>> ranges;  // offset, bytes
  };

  static bool InShape(const JsonPath& path) { return path.key(0) == "shape"; }

  static absl::Status Keep(const JsonPath& path, const JsonScalar& value,
                           std::optional<int64_t>* number) {
    SLUICE_ASSIGN_OR_RETURN(*number, IntegerAt(path, value));
    return absl::OkStatus();
  }

  static absl::Status Append(const JsonPath& path, const JsonScalar& value,
                             std::vector<int64_t>* list) {
    SLUICE_ASSIGN_OR_RETURN(const auto read, IntegerAt(path, value));
    list->push_back(read);
    return absl::OkStatus();
  }

  absl::StatusOr<Answer> BeginMember(const JsonPath& path, JsonKind kind) {
    const std::string& key = path.key(0);
    if (key == "objects" || key == "shape") {
      if (kind != JsonKind::kList) return WrongKind(path, "a list", kind);
      if (key == "objects") has_objects_ = true;
      if (key == "shape") shape_.emplace();
      return Answer::kRead;
    }
    if (key == "version" || key == "items") return WrongKind(path, "an integer", kind);
    if (key == "format" || key == "dtype") return WrongKind(path, "a string", kind);
    return Answer::kSkip;
  }

  absl::Status Member(const JsonPath& path, const JsonScalar& value) {
    const std::string& key = path.key(0);
    if (key == "version") return Keep(path, value, &version_);
    if (key == "items") return Keep(path, value, &items_);
    if (key == "format" || key == "dtype") return Name(path, value, key == "format");
    if (key == "objects" || key == "shape") return WrongKind(path, "a list", value.kind);
    return absl::OkStatus();
  }

  absl::Status Name(const JsonPath& path, const JsonScalar& value, bool is_format) {
    SLUICE_ASSIGN_OR_RETURN(const auto text, StringAt(path, value));
    if (is_format) {
      SLUICE_ASSIGN_OR_RETURN(index_->format, ParseShardFormat(text));
      has_format_ = true;
      return absl::OkStatus();
    }
    SLUICE_ASSIGN_OR_RETURN(type_, ParseElementType(text));
    return absl::OkStatus();
  }

  absl::Status ShapeNumber(const JsonPath& path, const JsonScalar& value) {
    if (shape_->size() == kMaxTensorDims) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"shape\" has more than ", kMaxTensorDims, " dimensions"));
    }
    return Append(path, value, &*shape_);
  }

  absl::StatusOr<Answer> BeginObjectMember(const JsonPath& path, JsonKind kind) {
    const std::string& key = path.key(2);
    if (key == "ranges") {
      if (kind != JsonKind::kList) return WrongKind(path, "a list", kind);
      object_.has_ranges = true;
      return Answer::kRead;
    }
    if (key == "name") return WrongKind(path, "a string", kind);
    if (NumberOf(key) != nullptr) return WrongKind(path, "an integer", kind);
    return Answer::kSkip;
  }

  std::optional<int64_t>* NumberOf(absl::string_view key) {
    if (key == "bytes") return &object_.bytes;
    if (key == "items") return &object_.items;
    if (key == "offset") return &object_.offset;
    if (key == "item_bytes") return &object_.item_bytes;
    if (key == "stride") return &object_.stride;
    return nullptr;
  }

  absl::Status ObjectMember(const JsonPath& path, const JsonScalar& value) {
    const std::string& key = path.key(2);
    if (key == "name") {
      SLUICE_ASSIGN_OR_RETURN(object_.name, StringAt(path, value));
      return absl::OkStatus();
    }
    if (key == "ranges") return WrongKind(path, "a list", value.kind);
    std::optional<int64_t>* number = NumberOf(key);
    return number != nullptr ? Keep(path, value, number) : absl::OkStatus();
  }

  absl::Status EndRange(const JsonPath& path) {
    if (range_.size() != 2) {
      return absl::InvalidArgumentError(
          absl::StrCat(path.Text(), " must be a list of offset and bytes"));
    }
    if (++ranges_ > limits_.ranges) {
      return absl::InvalidArgumentError(absl::StrCat("more than ", limits_.ranges, " ranges"));
    }
    object_.ranges.push_back({range_[0], range_[1]});
    return absl::OkStatus();
  }

  absl::Status EndObject(const JsonPath& path) {
    const auto wrong = [&](absl::string_view what) {
      return absl::InvalidArgumentError(absl::StrCat(path.Text(), " ", what));
    };
    if (static_cast<int64_t>(index_->catalog.objects().size()) >= limits_.objects) {
      return absl::InvalidArgumentError(absl::StrCat("more than ", limits_.objects, " objects"));
    }
    if (!object_.name.has_value()) return wrong("has no \"name\"");
    Catalog& catalog = index_->catalog;
    absl::Status status = catalog.AddObject(*std::move(object_.name), object_.bytes.value_or(-1));
    if (!status.ok()) return status;
    if (object_.has_ranges) {
      if (object_.items || object_.offset || object_.item_bytes || object_.stride) {
        return wrong("has \"ranges\" and what describes uniform items");
      }
      for (const auto& [offset, bytes] : object_.ranges) {
        SLUICE_RETURN_IF_ERROR(catalog.AddItems(1, offset, bytes, bytes));
      }
      return absl::OkStatus();
    }
    if (!object_.items.has_value() || !object_.item_bytes.has_value()) {
      return wrong("has neither \"ranges\" nor \"items\" and \"item_bytes\"");
    }
    if (*object_.item_bytes < 1) return wrong("has items of no bytes");
    return catalog.AddItems(*object_.items, object_.offset.value_or(0), *object_.item_bytes,
                            object_.stride.value_or(*object_.item_bytes));
  }

  absl::Status Finish() {
    if (!version_.has_value()) return absl::InvalidArgumentError("there is no \"version\"");
    if (*version_ != 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("version ", *version_, " is not known, only 1"));
    }
    if (!has_format_) return absl::InvalidArgumentError("there is no \"format\"");
    if (!has_objects_) return absl::InvalidArgumentError("there are no \"objects\"");
    if (!items_.has_value()) return absl::InvalidArgumentError("there is no \"items\"");
    Catalog& catalog = index_->catalog;
    if (*items_ != catalog.items()) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"items\" is ", *items_, ", but the objects have ", catalog.items()));
    }
    if (type_.has_value() != shape_.has_value()) {
      return absl::InvalidArgumentError("\"dtype\" and \"shape\" come together or not at all");
    }
    if (!type_.has_value()) return absl::OkStatus();
    return catalog.SetItemType({*type_, *shape_});
  }

  const ShardIndexLimits& limits_;
  ShardIndex* index_;
  std::optional<int64_t> version_;
  std::optional<int64_t> items_;
  bool has_format_ = false;
  bool has_objects_ = false;
  std::optional<ElementType> type_;
  std::optional<std::vector<int64_t>> shape_;
  Object object_;               // that is being read
  std::vector<int64_t> range_;  // likewise
  int64_t ranges_ = 0;          // of all objects
};

}  // namespace

absl::StatusOr<ShardIndex> ParseShardIndex(absl::string_view text, const ShardIndexLimits& limits) {
  ShardIndex index;
  ShardIndexListener listener(limits, &index);
  const JsonLimits json = {.text_bytes = limits.text_bytes};
  if (absl::Status status = ReadJson(text, json, &listener); !status.ok()) {
    return MakeError(absl::StatusCode::kInvalidArgument, kShardIndexName, ": ", status);
  }
  return index;
}

}  // namespace sluice
