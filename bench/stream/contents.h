// What the items of a run are, in which order a rank gets them, and what their bytes must be.
#ifndef SLUICE_BENCH_STREAM_CONTENTS_H_
#define SLUICE_BENCH_STREAM_CONTENTS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "plan/shard/stream_plan.h"
#include "sluice/stream.h"
#include "storage/catalog.h"
#include "storage/element_type.h"
#include "stream/options.h"
#include "workload/shard_fill.h"

namespace sluice::bench {

// The catalog of a source with a uri, as one rank alone finds it. Blocks; NotFound, InvalidArgument
// and the like as the library says them.
absl::StatusOr<Catalog> FindCatalog(const StreamOptions& stream);

class Contents {
 public:
  // Of `catalog`, or of what a generator makes. InvalidArgument for items that nobody knows what to
  // expect of: elements without a fill, or of another type than the transform's.
  static absl::StatusOr<std::unique_ptr<Contents>> Make(const StreamBenchOptions& options,
                                                        Catalog catalog);

  int64_t items() const { return items_; }
  int64_t BytesOf(int64_t item) const;  // as they lie on storage
  ElementType TypeOf(int64_t item) const;
  // As its format says; of items that have none, one dimension of elements.
  std::vector<int64_t> ShapeOf(int64_t item) const;
  const ShardFill& FillOf(ElementType type) const { return fills_.at(type); }

  // The positions of `stream`, which is this rank's: where its cursor says it goes on. Its ranks
  // exchange nothing. InvalidArgument for a cursor of something else.
  absl::StatusOr<StreamPlan> PlanOf(const StreamOptions& stream) const;

 private:
  Contents() = default;
  absl::Status AddFill(ElementType type, uint64_t seed);
  absl::Status AddFills(const StreamBenchOptions& options);

  bool has_catalog_ = false;
  Catalog catalog_;
  int64_t items_ = 0;
  int64_t item_bytes_ = 0;                     // of a generator's
  ElementType plain_type_ = ElementType::kU8;  // of items without a type
  std::map<ElementType, ShardFill> fills_;
};

// Fills an item and sleeps until `generate_ns` have passed since it began. Any number of threads.
Generator MakeFillGenerator(const ShardFill& fill, int64_t generate_ns);

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_STREAM_CONTENTS_H_
