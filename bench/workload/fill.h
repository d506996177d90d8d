// The values that tensors are filled with, so that anyone can check where each element came from.
//
// A value is a hash of 32 bits modulo m. The modulus m depends on the narrowest dtype of the case,
// such that every value is exact in every dtype. docs/layouts.md says what each of the two hashes
// can see.
#ifndef SLUICE_BENCH_WORKLOAD_FILL_H_
#define SLUICE_BENCH_WORKLOAD_FILL_H_

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "sluice/tensor.h"
#include "sluice/transfer.h"

namespace sluice::bench {

uint32_t FillModulus(DType dtype);

// The smallest modulus of all dtypes in `spec`.
uint32_t FillModulus(const TransferSpec& spec);

// The hash of each global element of one tensor, or of one contribution to it.
class ElementHash {
 public:
  // ((g + seed) * 2654435761 + q * 40503) mod 2^32: what fingerprints are made of. Sees neither the
  // tensor nor the high half of g. `q`: the lowest rank that holds the contribution, 0 if there are
  // none.
  static ElementHash Plain(int64_t seed, int q = 0);
  // Of the tensor's name, all 64 bits of g, the seed and q; `q` is -1 if there are no
  // contributions.
  static ElementHash Mixed(absl::string_view tensor, int64_t seed, int q = -1);

  // Writes those of the elements g, g + 1, .. g + count - 1.
  void Write(int64_t g, int64_t count, uint32_t* hashes) const;

 private:
  ElementHash(bool mixed, uint64_t key, uint32_t offset)
      : mixed_(mixed), key_(key), offset_(offset) {}

  bool mixed_;
  uint64_t key_;     // plain: the seed
  uint32_t offset_;  // plain: is added to the product
};

// How the tensors of a case are filled.
struct Fill {
  uint32_t modulus = 65521;  // one that FillModulus returns
  int64_t seed = 0;
  bool mixed = false;

  ElementHash HashOf(absl::string_view tensor) const;
  // `q`: the lowest rank that holds the contribution.
  ElementHash HashOfContribution(absl::string_view tensor, int q) const;
};

// What the elements of one tensor on one rank must be.
class Values {
 public:
  explicit Values(DType dtype) : dtype_(dtype) {}
  virtual ~Values() = default;

  // Writes the global elements g, g + 1, .. g + count - 1 to `dst`, which needs no alignment beyond
  // the element's.
  virtual void Write(int64_t g, int64_t count, std::byte* dst) const = 0;

  DType dtype() const { return dtype_; }

 private:
  DType dtype_;
};

// The fill as elements of one dtype.
class Filler final : public Values {
 public:
  // `modulus`: one that FillModulus returns; checked.
  Filler(DType dtype, uint32_t modulus, const ElementHash& hash);

  void Write(int64_t g, int64_t count, std::byte* dst) const override;

 private:
  using EncodeFunction = void (*)(const uint32_t* hashes, int64_t count, std::byte* dst);
  static EncodeFunction Choose(DType dtype, uint32_t modulus);

  ElementHash hash_;
  EncodeFunction encode_;
};

// What destinations hold before a run: as an element of any dtype it is negative, not a number, or
// larger than any fill value.
inline constexpr int kPoisonByte = 0xff;

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_WORKLOAD_FILL_H_
