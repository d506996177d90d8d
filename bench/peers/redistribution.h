// One matrix from its sources to its targets: where each pair's block lies, the memory, and what
// has to be in it. Plain C++, so that it builds with any MPI's compiler wrapper and without one.
#ifndef SLUICE_BENCH_PEERS_REDISTRIBUTION_H_
#define SLUICE_BENCH_PEERS_REDISTRIBUTION_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace sluice::peers {

struct Redistribution {
  // contiguous: all of it from rank 0 to rank 1. columns-to-rows: every rank has as many columns,
  // and gets as many rows; rows-to-columns: the other way round.
  std::string kind;
  int64_t rows;
  int64_t columns;
  int64_t element_bytes;  // 2 or 4
  int ranks;

  int64_t bytes() const { return rows * columns * element_bytes; }
  int64_t src_bytes(int rank) const;
  int64_t dst_bytes(int rank) const;
};

// What is wrong with it; nothing if it can be carried out.
std::string Problem(const Redistribution& what);

// The elements that `dst` gets from `src`: rows of equal length at equal distances, in bytes.
struct Block {
  int64_t rows = 0;  // 0: none
  int64_t row_bytes = 0;
  int64_t src_offset = 0;  // in the local memory of `src`
  int64_t src_stride = 0;
  int64_t dst_offset = 0;  // in that of `dst`
  int64_t dst_stride = 0;

  int64_t bytes() const { return rows * row_bytes; }
  bool src_is_dense() const { return rows == 1 || src_stride == row_bytes; }
  bool dst_is_dense() const { return rows == 1 || dst_stride == row_bytes; }
};
Block BlockOf(const Redistribution& what, int src, int dst);

// Row by row.
void CopyRows(int64_t rows, int64_t row_bytes, const std::byte* from, int64_t from_stride,
              std::byte* to, int64_t to_stride);

// One rank's part of the matrix, dense, before and after.
class Memory {
 public:
  Memory(const Redistribution& what, int rank);

  const std::byte* src() const { return src_.data(); }
  std::byte* dst() { return dst_.data(); }

  void Poison();  // the target part, so that nothing of an earlier round counts
  int64_t CountWrong() const;

 private:
  Redistribution what_;
  int rank_;
  std::vector<std::byte> src_;
  std::vector<std::byte> dst_;
};

}  // namespace sluice::peers

#endif  // SLUICE_BENCH_PEERS_REDISTRIBUTION_H_
