// Memory of the fake CUDA runtime: what lies at an address, and who still uses it.
#ifndef SLUICE_TESTS_FAKES_FAKE_CUDA_MEMORY_H_
#define SLUICE_TESTS_FAKES_FAKE_CUDA_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "fakes/fake_cuda_state.h"
#include "fakes/fake_shared_memory.h"

namespace sluice::fake_cuda {

enum class PlaceKind { kPageable, kPinned, kDevice, kBad };

struct Place {
  PlaceKind kind = PlaceKind::kBad;
  std::byte* host = nullptr;
  int device = 0;
};

// What a whole range is. Freed memory, and ranges that only begin or end in memory that the runtime
// knows, are bad, and misuse.
Place Locate(const State& state, const FakeCudaRange& range, const char* function);

// Where a range lies that kernels on `device` are to use. Misuse and nullptr if they cannot.
std::byte* DeviceBytes(const State& state, const FakeCudaRange& range, int device,
                       const char* function);

// The allocation with this byte; nullptr if there is none.
const Allocation* Find(const State& state, const void* pointer);
Allocation* Find(State& state, const void* pointer);

// Notes a use of the allocation at the pointer, if it is one.
void AddUse(State& state, const void* pointer, Use use);

// Takes so many bytes of the first gap that has them, from a multiple of `alignment` on.
std::optional<uintptr_t> TakeGap(Gaps& gaps, size_t bytes, size_t alignment);
// Joins what touches.
void AddGap(Gaps& gaps, uintptr_t begin, size_t bytes);

// Takes address space that the host cannot touch, also such as was given back if addresses are
// reused; 0 if there is none.
uintptr_t TakeAddresses(State& state, size_t reserved, size_t alignment);
// Of memory that was freed.
void GiveAddressesBack(State& state, const FreedRange& range);

// Enters `bytes` bytes of shared memory with address space of their own. nullptr if the system has
// none.
Allocation* MapDevice(State& state, MemoryKind kind, const std::shared_ptr<SharedMemory>& memory,
                      size_t bytes, int device);

// Ends an allocation whose address is `base`: waits for its uses, and complains if there are any
// that nobody saw to be done.
void Unmap(State& state, Lock& lock, uintptr_t base, const char* function);

}  // namespace sluice::fake_cuda

#endif  // SLUICE_TESTS_FAKES_FAKE_CUDA_MEMORY_H_
