// Which indices of one tensor dimension a rank owns: the benchmark's own reading of
// docs/layouts.md.
//
// Asks about one index at a time, by the words of the rule, and shares no code with the library. A
// layout that the library reads wrongly therefore shows as wrong elements.
#ifndef SLUICE_BENCH_WORKLOAD_OWNED_INDICES_H_
#define SLUICE_BENCH_WORKLOAD_OWNED_INDICES_H_

#include <cstdint>
#include <vector>

#include "sluice/layout.h"

namespace sluice::bench {

class OwnedIndices {
 public:
  // What follows from one index on.
  struct Answer {
    bool owned = false;
    int64_t position = 0;  // in the local tensor, of an index that is owned
    int64_t count = 1;  // indices from this one on that share the answer; positions go on with them
  };
  // Indices [begin, end), all owned.
  struct Stretch {
    int64_t begin;
    int64_t end;
  };

  // Of dimension `dim`, which has `size` indices, on `rank`. `layout` is a valid one for the
  // tensor. A rank outside the mesh owns nothing.
  OwnedIndices(const Layout& layout, int dim, int64_t size, int rank);

  // `index`: from 0 to size - 1.
  Answer At(int64_t index) const;

  // How many are owned.
  int64_t count() const { return count_; }

  // All that are owned, ascending; none of them is empty, and none touches the next one.
  std::vector<Stretch> Stretches() const;

 private:
  // One mesh dimension that cuts: the list of the indices that are left is cut into pieces, each
  // piece into parts, and one part of each piece is kept. A Shard has one piece.
  struct Cut {
    int64_t length;  // of the list
    int64_t piece;   // indices of each piece but the last, at least 1
    int64_t parts;
    int64_t kept;  // which part

    // Where the part that is kept begins, and ends, in a piece of `count` indices.
    int64_t Begin(int64_t count) const;
    int64_t End(int64_t count) const;
  };

  int64_t size_;
  int64_t count_ = 0;
  bool in_mesh_ = false;
  std::vector<Cut> cuts_;
};

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_WORKLOAD_OWNED_INDICES_H_
