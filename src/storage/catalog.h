// The catalog of a stream: objects, and the items that lie in them, numbered from 0.
//
// A catalog knows where items are, not how to read them. Items at equal distances cost one run,
// however many they are.
#ifndef SLUICE_SRC_STORAGE_CATALOG_H_
#define SLUICE_SRC_STORAGE_CATALOG_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "storage/element_type.h"

namespace sluice {

// The type of an item: a dense row-major array.
struct ItemType {
  ElementType element = ElementType::kU8;
  std::vector<int64_t> shape;  // at most kMaxTensorDims; none: one element

  bool operator==(const ItemType& other) const {
    return element == other.element && shape == other.shape;
  }
  template <typename H>
  friend H AbslHashValue(H hash, const ItemType& type) {
    return H::combine(std::move(hash), type.element, type.shape);
  }
};

// No catalog has more items, nor one object more bytes (2^62).
inline constexpr int64_t kCatalogItemsMax = int64_t{1} << 48;
inline constexpr int64_t kObjectBytesMax = int64_t{1} << 62;

// Const methods may be called by any number of threads at once.
class Catalog {
 public:
  struct Object {
    std::string name;
    int64_t bytes = -1;      // -1: not known
    int64_t first_item = 0;  // its items are those from here to the next object's
  };

  struct Item {
    int object = 0;
    int64_t offset = 0;  // in the object
    int64_t bytes = 0;   // 0 for an empty tensor: there is nothing to read
    int type = -1;       // a place in types(), -1 if not known
  };

  // Items of one object at equal distances: item first_item + i lies at offset + i * stride.
  struct Stretch {
    int64_t first_item = 0;
    int64_t offset = 0;
    int64_t stride = 0;
    int64_t item_bytes = 0;
    int object = 0;
    int type = -1;
  };

  // Adds an object; `bytes`: of the whole of it, -1 if not known. InvalidArgument for a name that
  // CheckObjectName refuses or that is there already.
  absl::Status AddObject(std::string name, int64_t bytes);

  // Adds `count` items to the object that was added last: the first at `offset`, each next one
  // `stride` on (0 or more; overlapping is allowed). InvalidArgument, and nothing is added, if one
  // is not inside the object, or not of the size that its type has.
  absl::Status AddItems(int64_t count, int64_t offset, int64_t item_bytes, int64_t stride,
                        const ItemType* type = nullptr);

  // Gives all items the same type. InvalidArgument, and no item gets it, if one has another size.
  absl::Status SetItemType(const ItemType& type);

  int64_t items() const { return items_; }
  absl::Span<const Object> objects() const { return objects_; }
  absl::Span<const ItemType> types() const { return types_; }
  absl::Span<const Stretch> runs() const { return runs_; }
  int64_t largest_item_bytes() const { return largest_item_bytes_; }

  // `item` is from 0 to items() - 1; checked. Takes time that grows as the logarithm of runs().
  Item ItemAt(int64_t item) const;

  // The type of all items, if they have one and the same; nullptr otherwise.
  const ItemType* UniformType() const;

  int64_t ItemsOf(int object) const;
  absl::Span<const Stretch> RunsOf(int object) const;
  // How many items a run of runs() has.
  int64_t CountOf(const Stretch& run) const;

 private:
  int TypeId(const ItemType* type);
  bool Extend(int64_t count, int64_t offset, int64_t item_bytes, int64_t stride, int type);

  std::vector<Object> objects_;
  absl::flat_hash_set<std::string> names_;
  std::vector<Stretch> runs_;  // by first_item
  std::vector<ItemType> types_;
  absl::flat_hash_map<ItemType, int> type_ids_;
  int64_t items_ = 0;
  int64_t largest_item_bytes_ = 0;
};

}  // namespace sluice

#endif  // SLUICE_SRC_STORAGE_CATALOG_H_
