// The values that tensors are filled with, so that anyone can check where each element came from.
//
// Global element g has the value (((g + seed) * 2654435761) mod 2^32) mod m. The modulus m depends
// on the narrowest dtype of the case, such that every value is exact in every dtype. Under a
// Partial placement a contribution adds an offset of its own to the product.
#ifndef SLUICE_BENCH_WORKLOAD_FILL_H_
#define SLUICE_BENCH_WORKLOAD_FILL_H_

#include <cstddef>
#include <cstdint>

#include "sluice/tensor.h"
#include "sluice/transfer.h"
#include "workload/values.h"

namespace sluice::bench {

uint32_t FillModulus(DType dtype);

// The smallest modulus of all dtypes in `spec`.
uint32_t FillModulus(const TransferSpec& spec);

// The value of global element `g`.
uint32_t FillValue(int64_t g, int64_t seed, uint32_t modulus);

// The fill as elements of one dtype.
class Filler final : public Values {
 public:
  // `modulus`: one that FillModulus returns; checked. `offset` is added to the product.
  Filler(DType dtype, uint32_t modulus, int64_t seed, uint32_t offset = 0);

  void Write(int64_t g, int64_t count, std::byte* dst) const override {
    write_(static_cast<uint32_t>(static_cast<uint64_t>(g) + seed_), offset_, count, dst);
  }

 private:
  using WriteFunction = void (*)(uint32_t first, uint32_t offset, int64_t count, std::byte* dst);
  static WriteFunction Choose(DType dtype, uint32_t modulus);

  uint64_t seed_;
  uint32_t offset_;
  WriteFunction write_;
};

// What destinations hold before a run: as an element of any dtype it is negative, not a number, or
// larger than any fill value.
inline constexpr int kPoisonByte = 0xff;

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_WORKLOAD_FILL_H_
