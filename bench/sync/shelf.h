// Memory of versions that are no more, for versions to come.
#ifndef SLUICE_BENCH_SYNC_SHELF_H_
#define SLUICE_BENCH_SYNC_SHELF_H_

#include <cstddef>
#include <vector>

#include "memory/mapped_memory.h"

namespace sluice::bench {

// Pages that the kernel gives for the first time cost more than filling them: where a hypervisor
// has yet to find them, a GiB took five seconds. So what has been used is used again.
// Thread: one.
class Shelf {
 public:
  // At least `bytes`, of any content; what is here already, if a piece is no larger than twice
  // that. Null: there is not so much memory.
  MappedMemory Take(size_t bytes);
  // Keeps up to kMost pieces, the last ones that came.
  void Put(MappedMemory memory);
  // Puts `pieces` of `bytes` there that have been written to. Less where memory ends.
  void Stock(int pieces, size_t bytes);

  size_t pieces() const { return memory_.size(); }

 private:
  static constexpr size_t kMost = 3;

  std::vector<MappedMemory> memory_;  // the oldest first
};

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_SYNC_SHELF_H_
