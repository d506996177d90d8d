// Answers questions about the items of a catalog.
#include "session/stream/catalog_items.h"

#include <algorithm>

#include "tensor/checked.h"
#include "tensor/stable_hash.h"

namespace sluice {
namespace {

// The shape of items that do not have one themselves.
std::vector<int64_t> ShapeOfElements(int64_t elements, const std::vector<int64_t>& shape) {
  const std::optional<int64_t> wanted = CheckedProduct(shape);
  if (shape.empty() || wanted != elements) return {elements};
  return shape;
}

}  // namespace

StreamItem CatalogItems::At(int64_t item) const {
  const Catalog::Item found = catalog_.ItemAt(item);
  return {found.object, found.offset, found.bytes};
}

const ItemType* CatalogItems::TypeOf(const Catalog::Item& item) const {
  if (item.type < 0) return nullptr;
  const ItemType& type = catalog_.types()[static_cast<size_t>(item.type)];
  const std::optional<DType> dtype = sluice::DTypeOf(type.element);
  if (!dtype || (dtype_ && *dtype != *dtype_)) return nullptr;
  return &type;
}

DType CatalogItems::DTypeOf(int64_t item) const {
  if (const ItemType* const type = TypeOf(catalog_.ItemAt(item))) {
    return *sluice::DTypeOf(type->element);
  }
  return dtype_.value_or(DType::kU8);
}

std::vector<int64_t> CatalogItems::ShapeOf(int64_t item) const {
  const Catalog::Item found = catalog_.ItemAt(item);
  const ItemType* const type = TypeOf(found);
  if (type == nullptr) {
    return ShapeOfElements(found.bytes / DTypeBytes(dtype_.value_or(DType::kU8)), shape_);
  }
  // A mere length.
  return type->shape.size() == 1 ? ShapeOfElements(type->shape[0], shape_) : type->shape;
}

// All items of a run are alike.
absl::Status CatalogItems::EachShape(
    const std::function<absl::Status(absl::Span<const int64_t> shape)>& see) const {
  for (const Catalog::Stretch& run : catalog_.runs()) {
    if (absl::Status status = see(ShapeOf(run.first_item)); !status.ok()) return status;
  }
  return absl::OkStatus();
}

bool CatalogItems::uniform() const {
  const absl::Span<const Catalog::Stretch> runs = catalog_.runs();
  return std::all_of(runs.begin(), runs.end(), [&](const Catalog::Stretch& run) {
    return run.item_bytes == item_bytes_max() && run.type == runs[0].type;
  });
}

bool CatalogItems::aligned_to(int64_t alignment) const {
  const absl::Span<const Catalog::Stretch> runs = catalog_.runs();
  return std::all_of(runs.begin(), runs.end(), [&](const Catalog::Stretch& run) {
    return run.offset % alignment == 0 &&
           (run.stride % alignment == 0 || catalog_.CountOf(run) == 1);
  });
}

std::vector<std::string> CatalogItems::object_names() const {
  std::vector<std::string> names;
  for (const Catalog::Object& object : catalog_.objects()) names.push_back(object.name);
  return names;
}

uint64_t CatalogItems::fingerprint() const {
  StableHash hash;
  for (const Catalog::Object& object : catalog_.objects()) {
    hash.AddText(object.name);
    hash.AddSigned(object.bytes);
    hash.AddSigned(object.first_item);
  }
  for (const Catalog::Stretch& run : catalog_.runs()) {
    for (const int64_t value : {run.first_item, run.offset, run.stride, run.item_bytes}) {
      hash.AddSigned(value);
    }
  }
  return std::max<uint64_t>(1, hash.value());  // 0: not known
}

std::vector<int64_t> GeneratedItems::ShapeOf(int64_t) const {
  return ShapeOfElements(item_bytes_ / DTypeBytes(dtype_), shape_);
}

uint64_t GeneratedItems::fingerprint() const {
  StableHash hash;
  hash.AddText("generator");
  hash.AddSigned(item_bytes_);
  if (sized_) hash.AddText("sized");
  return std::max<uint64_t>(1, hash.value());
}

}  // namespace sluice
