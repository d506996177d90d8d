// Items that a program makes, as a source: a callback runs ahead on a thread of its own.
#ifndef SLUICE_SRC_STORAGE_GENERATOR_SOURCE_H_
#define SLUICE_SRC_STORAGE_GENERATOR_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "storage/source.h"

namespace sluice {

// Makes an item, by filling all of `into`. An error or an exception ends that item's read with an
// error that names the item: what it throws becomes Internal.
using GenerateItem = std::function<absl::Status(int64_t item, absl::Span<std::byte> into)>;

struct GeneratorOptions {
  int64_t item_bytes = 0;
  // An item is begun only after UpdateEnded of the one made before it. The first needs none.
  bool after_update = false;
};

// One object, in which item i is the range of `item_bytes` from i * item_bytes on; a read is of a
// whole item. Items are made one after the other, in the order of the reads. Cancel ends what has
// not begun.
// The destructor waits for the callback under way, and calls it no more.
class GeneratorSource : public Source {
 public:
  // The trainer has done with this item, and with all below it. Thread: any.
  virtual void UpdateEnded(int64_t item) = 0;
};

absl::StatusOr<std::unique_ptr<GeneratorSource>> MakeGeneratorSource(
    GenerateItem generate, const GeneratorOptions& options);

}  // namespace sluice

#endif  // SLUICE_SRC_STORAGE_GENERATOR_SOURCE_H_
