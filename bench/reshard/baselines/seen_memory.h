// Memory that several processes have mapped, as this one sees it: by what the kernel lists.
#ifndef SLUICE_BENCH_RESHARD_BASELINES_SEEN_MEMORY_H_
#define SLUICE_BENCH_RESHARD_BASELINES_SEEN_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sluice::bench {

// A place that means the same in all processes of a machine.
struct SharedPlace {
  uint64_t machine = 0;  // since its last start
  uint64_t device = 0;
  uint64_t inode = 0;  // 0: no such place
  uint64_t offset = 0;
};

class SeenMemory {
 public:
  // Reads /proc/self/maps, once. Sees nothing where there is no such file.
  static SeenMemory OfThisProcess();

  // Where `data` is; no place if it is in private memory.
  SharedPlace PlaceOf(const std::byte* data) const;
  // `bytes` from `place` on, in this process; null if it has not mapped all of them in one go.
  std::byte* Find(const SharedPlace& place, uint64_t bytes) const;

 private:
  struct Mapping {
    uint64_t begin;
    uint64_t end;
    SharedPlace place;  // of `begin`
  };
  std::vector<Mapping> mappings_;  // that are shared
};

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_RESHARD_BASELINES_SEEN_MEMORY_H_
