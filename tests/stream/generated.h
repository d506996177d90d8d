// Streams of generated items, whose bytes follow from their numbers.
#ifndef SLUICE_TESTS_STREAM_GENERATED_H_
#define SLUICE_TESTS_STREAM_GENERATED_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "sluice/stream.h"
#include "stream/shard_dir.h"

namespace sluice::stream_test {

inline constexpr int64_t kItemBytes = 100;

inline void FillBytes(int64_t item, absl::Span<std::byte> into) {
  for (size_t at = 0; at < into.size(); ++at) {
    into[at] = ShardDir::ByteOf(item, static_cast<int64_t>(at));
  }
}

inline bool HasItem(const TensorView& view, int64_t item, int64_t bytes) {
  if (view.shape != std::vector<int64_t>{bytes}) return false;
  const auto* const data = static_cast<const std::byte*>(view.data) + view.byte_offset;
  for (int64_t at = 0; at < bytes; ++at) {
    if (data[at] != ShardDir::ByteOf(item, at)) return false;
  }
  return true;
}

inline StreamOptions GeneratorOptions(GenerateOrder order, int64_t items) {
  StreamOptions options;
  options.source.item_bytes = kItemBytes;
  options.source.generator_items = items;
  options.source.generate_order = order;
  options.reads.budget_bytes = int64_t{1} << 20;
  return options;
}

// All items of a lease, which are added to `items`.
inline void ExpectItems(const Lease& lease, std::vector<int64_t>* items) {
  for (int64_t i = 0; i < lease.items(); ++i) {
    EXPECT_TRUE(HasItem(lease.view(i), lease.item(i), kItemBytes)) << lease.item(i);
    items->push_back(lease.item(i));
  }
}

}  // namespace sluice::stream_test

#endif  // SLUICE_TESTS_STREAM_GENERATED_H_
