// The values that tensors are filled with, so that anyone can check where each element came from.
//
// Global element g has the value (((g + seed) * 2654435761) mod 2^32) mod m. The modulus m depends
// on the narrowest dtype of the case, such that every value is exact in every dtype.
#ifndef SLUICE_BENCH_WORKLOAD_FILL_H_
#define SLUICE_BENCH_WORKLOAD_FILL_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "sluice/tensor.h"
#include "sluice/transfer.h"

namespace sluice::bench {

uint32_t FillModulus(DType dtype);

// The smallest modulus of all dtypes in `spec`.
uint32_t FillModulus(const TransferSpec& spec);

// The value of global element `g`.
uint32_t FillValue(int64_t g, int64_t seed, uint32_t modulus);

// Writes values as elements of one dtype.
class Filler {
 public:
  // `modulus`: one that FillModulus returns; checked.
  Filler(DType dtype, uint32_t modulus, int64_t seed);

  // Writes the elements g, g + 1, .. g + count - 1 to `dst`, which needs no alignment beyond the
  // element's.
  void Write(int64_t g, int64_t count, std::byte* dst) const {
    write_(static_cast<uint32_t>(static_cast<uint64_t>(g) + seed_), count, dst);
  }

  DType dtype() const { return dtype_; }

 private:
  using WriteFunction = void (*)(uint32_t first, int64_t count, std::byte* dst);
  static WriteFunction Choose(DType dtype, uint32_t modulus);

  DType dtype_;
  uint64_t seed_;
  WriteFunction write_;
};

// What destinations hold before a run: as an element of any dtype it is negative, not a number, or
// larger than any fill value.
inline constexpr int kPoisonByte = 0xff;

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_WORKLOAD_FILL_H_
