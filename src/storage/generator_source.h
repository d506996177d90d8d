// Items that a program makes, as a source: a callback runs on threads of its own, as far ahead as
// it is allowed.
#ifndef SLUICE_SRC_STORAGE_GENERATOR_SOURCE_H_
#define SLUICE_SRC_STORAGE_GENERATOR_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "storage/source.h"

namespace sluice {

// Makes an item: returns how many bytes of `into` it has. An error or an exception ends that item's
// read with an error that names the item: what it throws becomes Internal.
using GenerateItem =
    std::function<absl::StatusOr<int64_t>(int64_t item, absl::Span<std::byte> into)>;

struct GeneratorOptions {
  int64_t item_bytes = 0;  // at most
  // Items have any number of bytes up to item_bytes, and are stored with their length: see
  // sized_item.h. Otherwise each has item_bytes.
  bool sized = false;
  int64_t element_bytes = 1;  // an item has whole elements
  int threads = 1;            // which call the generator at once
  int64_t batches = 1;        // which may begin before the first Allow
};

// One object, in which item i is the i-th range of equal ranges; a read is of a whole one. Reads
// begin in the order of their batches, within these as they were started, once Allow has come so
// far. A read whose item is being made counts as one whose bytes come: it is never late. Cancel
// ends what has not begun.
// The destructor waits for the callbacks under way, and calls no more.
class GeneratorSource : public Source {
 public:
  // Reads of batches below `batches` may begin, and will see `updates` of a trainer. Neither ever
  // goes down. Takes no lock. Thread: any one.
  virtual void Allow(int64_t batches, int64_t updates) = 0;

  // Over all reads that have begun: their batch less the updates of then. Thread: any.
  virtual int64_t staleness_max() const = 0;
};

absl::StatusOr<std::unique_ptr<GeneratorSource>> MakeGeneratorSource(
    GenerateItem generate, const GeneratorOptions& options);

}  // namespace sluice

#endif  // SLUICE_SRC_STORAGE_GENERATOR_SOURCE_H_
