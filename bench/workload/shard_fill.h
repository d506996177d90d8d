// What the items of generated data shards hold, so that anyone can check what a stream delivers.
//
// Item i of bytes (u8) is a row of little-endian 64-bit words, the last one cut. Word j is
//   word(i, j) = (i + 1 + seed) * 0x9E3779B97F4A7C15 + (j + 1) * 0xD1B54A32D192ED03  mod 2^64.
// Of any other type, element e of item i is the number
//   ((i * 2654435761 + e * 40503 + seed) mod 2^32) mod m.
// The modulus m is 127 for i8 and i16, 251 for bf16, 2039 for f16, and 65521 for i32, i64, f32 and
// f64. So the number is exact.
#ifndef SLUICE_BENCH_WORKLOAD_SHARD_FILL_H_
#define SLUICE_BENCH_WORKLOAD_SHARD_FILL_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "storage/element_type.h"

namespace sluice::bench {

// Const methods may be called by any number of threads at once, and allocate nothing.
class ShardFill {
 public:
  // InvalidArgument for a type that has no fill.
  static absl::StatusOr<ShardFill> Make(ElementType type, uint64_t seed);

  ElementType type() const { return type_; }

  // Writes the bytes of `item` from `offset` on. Offsets and sizes are multiples of the element's
  // size; checked. `out` needs no alignment.
  void FillItem(int64_t item, int64_t offset, absl::Span<std::byte> out) const;

  // How many elements of `bytes` (for u8: bytes) are not those of `item` from `offset` on.
  int64_t CheckItem(int64_t item, int64_t offset, absl::Span<const std::byte> bytes) const;

  // Element `e` of `item`, as a number.
  uint32_t Value(int64_t item, int64_t e) const;

 private:
  ShardFill(ElementType type, uint64_t seed, uint32_t modulus);

  // Calls visit(table bytes, place in the range, bytes) for the pieces that make up the range.
  template <typename Visit>
  void ForEachPiece(int64_t item, int64_t offset, size_t bytes, Visit visit) const;

  ElementType type_;
  uint64_t seed_;
  size_t element_bytes_;
  uint32_t modulus_;  // 1 for u8
  // Between two overflows of the 32-bit sum, the numbers repeat themselves after m elements: here
  // they are from the one that is 0 on, over m elements and more.
  std::vector<std::byte> table_;
  size_t table_elements_ = 0;
  // How many elements after the 0 the number 1 comes: n comes n times as many after it, mod m.
  uint32_t place_of_one_ = 0;
};

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_WORKLOAD_SHARD_FILL_H_
