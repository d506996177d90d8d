// Pages of their own, which go back to the kernel when they are freed.
//
// Memory of malloc may stay with the process, and would then count as what a run has taken.
#ifndef SLUICE_BENCH_MEMORY_MAPPED_MEMORY_H_
#define SLUICE_BENCH_MEMORY_MAPPED_MEMORY_H_

#include <sys/mman.h>

#include <cstddef>
#include <memory>

namespace sluice::bench {

struct Unmap {
  size_t bytes = 0;
  void operator()(std::byte* data) const { munmap(data, bytes); }
};
using MappedMemory = std::unique_ptr<std::byte[], Unmap>;

// Zero; physical memory comes with the first use. Null if `bytes` cannot be had, or are 0.
inline MappedMemory MapMemory(size_t bytes) {
  void* const data =
      bytes == 0 ? MAP_FAILED
                 : mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return MappedMemory(data == MAP_FAILED ? nullptr : static_cast<std::byte*>(data), {bytes});
}

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_MEMORY_MAPPED_MEMORY_H_
