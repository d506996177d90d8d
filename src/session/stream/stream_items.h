// The items of a stream's source: where each lies, and what it is to its consumer.
#ifndef SLUICE_SRC_SESSION_STREAM_STREAM_ITEMS_H_
#define SLUICE_SRC_SESSION_STREAM_STREAM_ITEMS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
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
  virtual std::vector<int64_t> ShapeOf(int64_t item) const = 0;  // empty: a single number

  // Calls `see` with each shape that items have, some of them several times, until it fails.
  virtual absl::Status EachShape(
      const std::function<absl::Status(absl::Span<const int64_t> shape)>& see) const {
    for (int64_t item = 0; item < items(); ++item) {
      if (absl::Status status = see(ShapeOf(item)); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

  virtual int64_t item_bytes_max() const = 0;
  // All items are of one size.
  virtual bool uniform() const = 0;
  // All items begin at multiples of `alignment`.
  virtual bool aligned_to(int64_t alignment) const = 0;
  // Any rank that needs an item can make it.
  virtual bool made() const { return false; }
  // Items come with their lengths, which nobody knows before: see storage/sized_item.h. Until then
  // each counts as one of the longest.
  virtual bool sized() const { return false; }
  // Most bytes of one item that are handed out.
  virtual int64_t payload_bytes_max() const { return item_bytes_max(); }
  virtual std::vector<std::string> object_names() const = 0;
  // A hash of the items' places and lengths, not of their bytes: equal in every process.
  virtual uint64_t fingerprint() const = 0;
};

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_STREAM_STREAM_ITEMS_H_
