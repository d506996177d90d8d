// Filling, checking, damaging and adding up one rank's dense local tensor.
#ifndef SLUICE_BENCH_WORKLOAD_LOCAL_TENSOR_H_
#define SLUICE_BENCH_WORKLOAD_LOCAL_TENSOR_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "sluice/tensor.h"
#include "workload/fill.h"
#include "workload/local_part.h"

namespace sluice::bench {

// Writes the value of every element of `part` to the dense tensor at `data`.
void FillPart(const LocalPart& part, const Values& values, std::byte* data);

// How many elements of the dense tensor at `data` are not bit for bit what FillPart writes. Where
// that is no number, any one that is none will do, but for the poison. `sampled`: only 4 KiB of
// every 64 are looked at, and the last 4 KiB.
int64_t CountWrong(const LocalPart& part, const Values& values, const std::byte* data,
                   bool sampled = false);

// Where this rank's elements of one tensor stand among the elements of all targets of a case.
struct ElementSpan {
  int64_t begin = 0;
  int64_t count = 0;
  int64_t total = 0;  // of all
};

// This rank's share of damaging `bytes` bytes of all targets, evenly spread over the elements.
// Damages the highest byte of each element first, where no fill value survives it. Once all highest
// bytes are used up, damages the next lower bytes, and so on. Never damages one byte twice.
void FlipBytes(int64_t bytes, const ElementSpan& span, int64_t element_bytes, std::byte* data);

// What a target rank says about the memory it ended up with, for others to compare.
struct Fingerprint {
  std::vector<int64_t> local_shape;
  int64_t checksum = 0;           // sum of the values as integers
  uint64_t ordered_checksum = 0;  // sum of (position + 1) * value, modulo 2^64
  std::optional<int64_t> first;   // flat indices that the layout says are owned
  std::optional<int64_t> last;
};

// Of the dense local tensor at `data`, which `part` describes. A value that is no integer counts as
// the integer towards zero, one that is no number as 0.
Fingerprint TakeFingerprint(const LocalPart& part, DType dtype, const std::byte* data);

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_WORKLOAD_LOCAL_TENSOR_H_
