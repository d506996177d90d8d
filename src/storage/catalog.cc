// Adding items, merging them into runs, and finding one.
#include "storage/catalog.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "storage/object_name.h"
#include "storage/tensor_bytes.h"
#include "tensor/check.h"
#include "tensor/error_text.h"
#include "tensor/quoted.h"

namespace sluice {
namespace {

// The end of the last of `count` items; nothing if that passes kObjectBytesMax.
std::optional<int64_t> EndOf(int64_t count, int64_t offset, int64_t item_bytes, int64_t stride) {
  int64_t end = 0;
  if (__builtin_mul_overflow(count - 1, stride, &end) ||
      __builtin_add_overflow(end, offset, &end) || __builtin_add_overflow(end, item_bytes, &end) ||
      end > kObjectBytesMax) {
    return std::nullopt;
  }
  return end;
}

absl::Status CheckType(const ItemType& type, int64_t item_bytes) {
  if (type.shape.size() > kMaxTensorDims ||
      std::any_of(type.shape.begin(), type.shape.end(), [](int64_t n) { return n < 0; })) {
    return absl::InvalidArgumentError(
        absl::StrCat("an item cannot have the shape [", absl::StrJoin(type.shape, ", "), "]"));
  }
  const auto bytes = TensorBytes(type.element, type.shape);
  if (bytes == item_bytes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("an item of ", item_bytes, " bytes is not ",
                                                 ElementName(type.element), " [",
                                                 absl::StrJoin(type.shape, ", "), "]"));
}

}  // namespace

absl::Status Catalog::AddObject(std::string name, int64_t bytes) {
  SLUICE_RETURN_IF_ERROR(CheckObjectName(name));
  if (bytes < -1 || bytes > kObjectBytesMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("object ", Quoted(name), " cannot have ", bytes, " bytes"));
  }
  constexpr size_t kMostObjects = size_t{1} << 30;
  if (objects_.size() >= kMostObjects) return absl::InvalidArgumentError("more than 2^30 objects");
  if (!names_.insert(name).second) {
    return absl::InvalidArgumentError(absl::StrCat("object ", Quoted(name), " is there twice"));
  }
  objects_.push_back({std::move(name), bytes, items_});
  return absl::OkStatus();
}

absl::Status Catalog::AddItems(int64_t count, int64_t offset, int64_t item_bytes, int64_t stride,
                               const ItemType* type) {
  SLUICE_CHECK(!objects_.empty(), "items without an object");
  const Object& object = objects_.back();
  if (count < 0 || offset < 0 || item_bytes < 0 || stride < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("object ", Quoted(object.name), " has a negative count or size of items"));
  }
  if (count == 0) return absl::OkStatus();
  if (count > kCatalogItemsMax - items_) return absl::InvalidArgumentError("more than 2^48 items");
  const auto end = EndOf(count, offset, item_bytes, stride);
  if (!end.has_value() || (object.bytes >= 0 && *end > object.bytes)) {
    return absl::InvalidArgumentError(
        absl::StrCat("items of object ", Quoted(object.name), " pass its end: ", count, " of ",
                     item_bytes, " bytes, ", stride, " apart, from ", offset, " on, in ",
                     object.bytes >= 0 ? absl::StrCat(object.bytes) : "less than 2^62", " bytes"));
  }
  if (type != nullptr) {
    SLUICE_RETURN_IF_ERROR(CheckType(*type, item_bytes));
  }
  const int type_id = TypeId(type);
  if (!Extend(count, offset, item_bytes, stride, type_id)) {
    const int last = static_cast<int>(objects_.size()) - 1;
    runs_.push_back({items_, offset, count > 1 ? stride : item_bytes, item_bytes, last, type_id});
  }
  items_ += count;
  largest_item_bytes_ = std::max(largest_item_bytes_, item_bytes);
  return absl::OkStatus();
}

// Whether the items only lengthen the last run, which then is done: items_ says how long it is.
bool Catalog::Extend(int64_t count, int64_t offset, int64_t item_bytes, int64_t stride, int type) {
  if (runs_.empty() || runs_.back().object != static_cast<int>(objects_.size()) - 1) return false;
  Stretch& run = runs_.back();
  if (run.item_bytes != item_bytes || run.type != type) return false;
  const int64_t run_count = items_ - run.first_item;
  const int64_t distance = offset - (run.offset + (run_count - 1) * run.stride);
  if (distance < 0 || (count > 1 && stride != distance)) return false;
  if (run_count > 1) return distance == run.stride;
  run.stride = distance;
  return true;
}

int Catalog::TypeId(const ItemType* type) {
  if (type == nullptr) return -1;
  const auto [found, is_new] = type_ids_.try_emplace(*type, static_cast<int>(types_.size()));
  if (is_new) types_.push_back(*type);
  return found->second;
}

absl::Status Catalog::SetItemType(const ItemType& type) {
  for (const Stretch& run : runs_) {
    SLUICE_RETURN_IF_ERROR(CheckType(type, run.item_bytes));
  }
  types_ = {type};
  type_ids_ = {{type, 0}};
  for (Stretch& run : runs_) run.type = 0;
  return absl::OkStatus();
}

Catalog::Item Catalog::ItemAt(int64_t item) const {
  SLUICE_CHECK(item >= 0 && item < items_, "there is no such item");
  const auto after =
      std::upper_bound(runs_.begin(), runs_.end(), item,
                       [](int64_t wanted, const Stretch& run) { return wanted < run.first_item; });
  const Stretch& run = *std::prev(after);
  return {run.object, run.offset + (item - run.first_item) * run.stride, run.item_bytes, run.type};
}

const ItemType* Catalog::UniformType() const {
  if (runs_.empty()) return types_.size() == 1 ? &types_.front() : nullptr;
  const int type = runs_.front().type;
  const bool is_same =
      std::all_of(runs_.begin(), runs_.end(), [&](const Stretch& run) { return run.type == type; });
  return type >= 0 && is_same ? &types_[static_cast<size_t>(type)] : nullptr;
}

int64_t Catalog::ItemsOf(int object) const {
  const auto next = static_cast<size_t>(object) + 1;
  const int64_t end = next < objects_.size() ? objects_[next].first_item : items_;
  return end - objects_[next - 1].first_item;
}

absl::Span<const Catalog::Stretch> Catalog::RunsOf(int object) const {
  const auto first = std::partition_point(runs_.begin(), runs_.end(),
                                          [&](const Stretch& run) { return run.object < object; });
  const auto end = std::partition_point(first, runs_.end(),
                                        [&](const Stretch& run) { return run.object == object; });
  const auto begin_at = static_cast<size_t>(first - runs_.begin());
  return absl::MakeConstSpan(runs_).subspan(begin_at, static_cast<size_t>(end - first));
}

int64_t Catalog::CountOf(const Stretch& run) const {
  const Stretch* next = &run + 1;
  const int64_t end = next < runs_.data() + runs_.size() ? next->first_item : items_;
  return end - run.first_item;
}

}  // namespace sluice
