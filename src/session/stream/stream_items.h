// The items of a stream's source: where each lies, and what it is to its consumer.
#ifndef SLUICE_SRC_SESSION_STREAM_STREAM_ITEMS_H_
#define SLUICE_SRC_SESSION_STREAM_STREAM_ITEMS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "sluice/tensor.h"

namespace sluice {

struct StreamItem {
  int object = 0;
  int64_t offset = 0;
  int64_t bytes = 0;
};

// Thread: const calls, any.
class StreamItems {
 public:
  virtual ~StreamItems() = default;

  virtual int64_t items() const = 0;
  virtual StreamItem At(int64_t item) const = 0;
  // Whole elements of one item.
  virtual DType DTypeOf(int64_t item) const = 0;
  virtual std::vector<int64_t> ShapeOf(int64_t item) const = 0;

  virtual int64_t item_bytes_max() const = 0;
  // All items are of one size.
  virtual bool uniform() const = 0;
  // All items begin at multiples of `alignment`.
  virtual bool aligned_to(int64_t alignment) const = 0;
  virtual std::vector<std::string> object_names() const = 0;
  // Of where the items lie and how long they are, not of their bytes: equal in every process.
  virtual uint64_t fingerprint() const = 0;
};

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_STREAM_STREAM_ITEMS_H_
