// Memory of the fake CUDA runtime: what lies at an address, and who still uses it.
#ifndef SLUICE_TESTS_FAKES_FAKE_CUDA_MEMORY_H_
#define SLUICE_TESTS_FAKES_FAKE_CUDA_MEMORY_H_

#include <cstddef>
#include <memory>

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

// Makes address space for shared memory that the host cannot touch, and enters it. nullptr if the
// system has none.
Allocation* MapDevice(State& state, MemoryKind kind, const std::shared_ptr<SharedMemory>& memory,
                      int device);

// Ends an allocation whose address is `base`: waits for its uses, and complains if there are any
// that nobody saw to be done.
void Unmap(State& state, Lock& lock, uintptr_t base, const char* function);

}  // namespace sluice::fake_cuda

#endif  // SLUICE_TESTS_FAKES_FAKE_CUDA_MEMORY_H_
