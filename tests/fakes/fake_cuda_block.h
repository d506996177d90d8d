// Blocks of device memory that small allocations share, as drivers have them.
#ifndef SLUICE_TESTS_FAKES_FAKE_CUDA_BLOCK_H_
#define SLUICE_TESTS_FAKES_FAKE_CUDA_BLOCK_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>

#include "fakes/fake_cuda_state.h"
#include "fakes/fake_shared_memory.h"

namespace sluice::fake_cuda {

inline constexpr size_t kBlockBytes = size_t{2} << 20;  // they begin at multiples of it, too
inline constexpr size_t kSharingMax = size_t{1} << 20;  // larger allocations have their own memory
inline constexpr size_t kPartUnit = 512;

struct Block {
  std::thread::id maker;
  int device = 0;
  uintptr_t base = 0;
  std::shared_ptr<SharedMemory> memory = {};
  size_t unused = 0;  // nothing from here on was ever given out
  Gaps gaps = {};     // by offset: what may be given out again
  int parts = 0;      // that are allocated
};

// An allocation in a block that is there; nullptr if none has room.
Allocation* AllocateInBlock(State& state, size_t bytes, int device);
// An allocation in a block of its own so far; nullptr if the system has no memory.
Allocation* AllocateInNewBlock(State& state, size_t bytes, int device);

// The allocation, which was in a block, is no more. With the last one its block ends.
void EndInBlock(State& state, const Allocation& old);

// The block with this byte; nullptr if there is none.
const Block* FindBlock(const State& state, const void* pointer);

// How often processes have opened the allocation at an offset of a block's memory.
std::atomic<int32_t>& OpensInBlock(const SharedMemory& memory, size_t offset);

}  // namespace sluice::fake_cuda

#endif  // SLUICE_TESTS_FAKES_FAKE_CUDA_BLOCK_H_
