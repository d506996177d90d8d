// The items of a catalog, and those of a generator, as a stream sees them.
#ifndef SLUICE_SRC_SESSION_STREAM_CATALOG_ITEMS_H_
#define SLUICE_SRC_SESSION_STREAM_CATALOG_ITEMS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/optional.h"
#include "session/stream/stream_items.h"
#include "storage/catalog.h"
#include "storage/sized_item.h"

namespace sluice {

// Items of types without a DType, or of no type, are bytes. With a transform they are elements of
// its type. They have its shape, too, where they have as many elements and the format says no more
// than a length.
class CatalogItems final : public StreamItems {
 public:
  CatalogItems(Catalog catalog, absl::optional<DType> dtype, std::vector<int64_t> shape = {})
      : catalog_(std::move(catalog)), dtype_(dtype), shape_(std::move(shape)) {}

  int64_t items() const override { return catalog_.items(); }
  StreamItem At(int64_t item) const override;
  DType DTypeOf(int64_t item) const override;
  std::vector<int64_t> ShapeOf(int64_t item) const override;
  absl::Status EachShape(
      const std::function<absl::Status(absl::Span<const int64_t> shape)>& see) const override;
  int64_t item_bytes_max() const override { return catalog_.largest_item_bytes(); }
  bool uniform() const override;
  bool aligned_to(int64_t alignment) const override;
  std::vector<std::string> object_names() const override;
  uint64_t fingerprint() const override;

 private:
  const ItemType* TypeOf(const Catalog::Item& item) const;

  const Catalog catalog_;
  const absl::optional<DType> dtype_;  // of the transform's source
  const std::vector<int64_t> shape_;
};

class GeneratedItems final : public StreamItems {
 public:
  // `sized`: of at most `item_bytes`, and stored with their lengths.
  GeneratedItems(int64_t items, int64_t item_bytes, absl::optional<DType> dtype, bool sized = false,
                 std::vector<int64_t> shape = {})
      : items_(items),
        item_bytes_(item_bytes),
        stored_bytes_(sized ? StoredBytes(item_bytes) : item_bytes),
        sized_(sized),
        dtype_(dtype.value_or(DType::kU8)),
        shape_(std::move(shape)) {}

  int64_t items() const override { return items_; }
  StreamItem At(int64_t item) const override { return {0, item * stored_bytes_, stored_bytes_}; }
  DType DTypeOf(int64_t) const override { return dtype_; }
  std::vector<int64_t> ShapeOf(int64_t item) const override;
  absl::Status EachShape(
      const std::function<absl::Status(absl::Span<const int64_t> shape)>& see) const override {
    return see(ShapeOf(0));
  }
  int64_t item_bytes_max() const override { return stored_bytes_; }
  int64_t payload_bytes_max() const override { return item_bytes_; }
  bool uniform() const override { return !sized_; }
  bool made() const override { return true; }
  bool sized() const override { return sized_; }
  bool aligned_to(int64_t) const override { return true; }  // nothing is rounded
  std::vector<std::string> object_names() const override { return {"the generator"}; }
  uint64_t fingerprint() const override;

 private:
  const int64_t items_;
  const int64_t item_bytes_;
  const int64_t stored_bytes_;
  const bool sized_;
  const DType dtype_;
  const std::vector<int64_t> shape_;
};

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_STREAM_CATALOG_ITEMS_H_
