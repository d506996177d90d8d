// What the elements of a tensor hold in a test, on both sides of a transfer. They are made anew
// from a round number, and reduced and cast by oracles that share no code with the library.
//
// Elements are codes: their bytes as a little-endian number. Of elements with 16 bytes the code is
// the first half, and the second half is its complement: see CodeBytes.
#ifndef SLUICE_TESTS_SESSION_ELEMENT_VALUES_H_
#define SLUICE_TESTS_SESSION_ELEMENT_VALUES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "sluice/transfer.h"

namespace sluice::session_test {

// Elements of a tensor that are equal in each source, so that its view may have them at one place.
struct Likeness {
  std::vector<size_t> repeated;  // dimensions along which all elements are equal
  // A dimension: elements are equal where its index and that of the next one have equal sums; -1:
  // there is none. Neither of the two is repeated.
  int slid = -1;
};

// The bytes of an element; the first DTypeBytes of them count.
inline std::array<std::byte, 16> CodeBytes(uint64_t code) {
  const std::array<uint64_t, 2> halves = {code, ~code};
  std::array<std::byte, 16> bytes;
  std::memcpy(bytes.data(), halves.data(), bytes.size());
  return bytes;
}

class ElementValues {
 public:
  // `number` tells apart the values of different tensors.
  ElementValues(const TensorTransfer& tensor, uint64_t number, Likeness likeness = {});

  // Which contribution `rank`, which is in the source mesh, holds; 0 if nothing is reduced.
  int64_t ContributionOf(int rank) const;
  // What its holders have of the element with flat index `flat`: any bits at all, or, where
  // contributions are reduced, numbers whose sum depends on the order of addition.
  uint64_t Source(uint64_t round, int64_t flat, int64_t contribution) const;

  // What each target must end with. Partial mesh dimensions are reduced one after the other, left
  // to right, each in the order of its coordinates. Neighbours with the same op (sum, max or min)
  // are reduced at once, in mesh order. Every step is rounded to the source dtype. The result is
  // then cast.
  uint64_t Target(uint64_t round, int64_t flat) const;

 private:
  struct Level {
    std::vector<size_t> mesh_dims;
    int64_t ranks;
    ReduceOp op;
  };

  // Along the first `open` levels; `number` stands for the coordinates along the others.
  uint64_t Reduced(uint64_t round, int64_t flat, size_t open, int64_t number) const;
  // Equal for elements that are alike.
  int64_t KeyOf(int64_t flat) const;

  TensorTransfer tensor_;
  uint64_t number_;
  Likeness likeness_;
  std::vector<Level> partial_;  // dimensions of several ranks
};

}  // namespace sluice::session_test

#endif  // SLUICE_TESTS_SESSION_ELEMENT_VALUES_H_
