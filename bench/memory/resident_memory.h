// What the kernel counts as this process's memory.
#ifndef SLUICE_BENCH_MEMORY_RESIDENT_MEMORY_H_
#define SLUICE_BENCH_MEMORY_RESIDENT_MEMORY_H_

#include <cstdint>
#include <optional>

namespace sluice::bench {

// In bytes, from /proc/self/status. Together the three kinds are all pages that are there.
struct ResidentMemory {
  int64_t anonymous = 0;  // stacks, heaps and what else is this process's alone
  int64_t files = 0;      // mapped files, programs included
  int64_t shared = 0;     // memory that processes share, as far as this one has touched it
  int64_t peak = 0;       // the most of all three since it was set back
};

// Nothing where /proc does not say all of it.
std::optional<ResidentMemory> ReadResidentMemory();

// Has the peak begin anew, at what is there now. False where the kernel does not let this process.
bool ResetPeakMemory();

// Has this process map all pages of the memory that ranks share with it (Session::AllocateShared).
// Pages of other ranks' tensors count as this process's from its first access on, although they are
// no new memory: after this call no access to them counts any more.
void TouchSharedTensors();

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_MEMORY_RESIDENT_MEMORY_H_
