// The calls that allocate, free, register and look up memory.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

#include "fakes/fake_cuda_block.h"
#include "fakes/fake_cuda_call.h"
#include "fakes/fake_cuda_context.h"
#include "fakes/fake_cuda_memory.h"
#include "fakes/fake_cuda_state.h"
#include "fakes/fake_cuda_stream.h"
#include "fakes/fake_shared_memory.h"

namespace sluice::fake_cuda {
namespace {

// Fresh memory holds anything; so much of it is seen to.
constexpr size_t kJunkBytes = size_t{1} << 20;
constexpr int kJunk = 0xA5;

// Whether this thread's allocations come from a pool.
thread_local bool from_pool = false;

// What others have closed by now is not held any more.
void ReleaseHeld(State& state) {
  std::erase_if(state.held, [&state](const HeldMemory& held) {
    if (held.memory->Users() > 0) return false;
    state.devices[static_cast<size_t>(held.device)].allocated -= held.bytes;
    return true;
  });
}

// Memory that is shared with no other allocation; nullptr if the system has none.
Allocation* AllocateAlone(State& state, size_t bytes, int device) {
  const std::shared_ptr<SharedMemory> memory = SharedMemory::Create(bytes);
  return memory == nullptr ? nullptr : MapDevice(state, MemoryKind::kDevice, memory, bytes, device);
}

cudaError_t Malloc(void** pointer, size_t bytes) {
  if (pointer == nullptr) return cudaErrorInvalidValue;
  *pointer = nullptr;
  if (bytes == 0) return cudaSuccess;
  constexpr size_t kAddressable = size_t{1} << 48;
  if (bytes > kAddressable) return cudaErrorInvalidValue;
  auto [state, lock] = LockState();
  const int device = CurrentDevice();
  DeviceState& owner = state.devices[static_cast<size_t>(device)];
  const bool is_small = bytes <= kSharingMax && !from_pool;
  Allocation* made = is_small ? AllocateInBlock(state, bytes, device) : nullptr;
  if (made == nullptr) {
    const size_t taken = is_small ? kBlockBytes : bytes;
    if (taken > state.config.memory_bytes - owner.allocated) ReleaseHeld(state);
    if (taken > state.config.memory_bytes - owner.allocated) return cudaErrorMemoryAllocation;
    made =
        is_small ? AllocateInNewBlock(state, bytes, device) : AllocateAlone(state, bytes, device);
    if (made == nullptr) return cudaErrorMemoryAllocation;
    owner.allocated += taken;
  }
  made->is_of_pool = from_pool;
  std::memset(made->host, kJunk, std::min(bytes, kJunkBytes));
  *pointer = PointerTo(made->base);
  return cudaSuccess;
}

// The allocation of this kind that begins at the pointer; misuse and nullptr if there is none.
const Allocation* FindToFree(const State& state, const void* pointer, MemoryKind kind,
                             const char* function) {
  const Allocation* const found = Find(state, pointer);
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  if (found != nullptr && found->kind == kind && found->base == address) return found;
  const bool was_freed = std::any_of(state.freed.begin(), state.freed.end(),
                                     [&](const FreedRange& old) { return old.base == address; });
  AddMisuse(std::string(function) + " of " + Hex(pointer) +
            (was_freed ? ", which was freed" : ", which it did not give out"));
  return nullptr;
}

// How many processes have it open. Who opens a block opens all that is in it, so only its last
// allocation is in use then.
int UsersOf(const State& state, const Allocation& allocation) {
  const Block* const block = allocation.block.get();
  if (block == nullptr) return allocation.memory->Users();
  const bool is_open = state.config.handles_open_blocks
                           ? block->parts == 1
                           : OpensInBlock(*block->memory, allocation.base - block->base) > 0;
  return is_open ? block->memory->Users() : 0;
}

cudaError_t Free(const char* function, void* pointer) {
  if (pointer == nullptr) return cudaSuccess;
  CountHostWait();
  auto [state, lock] = LockState();
  const Allocation* const found = FindToFree(state, pointer, MemoryKind::kDevice, function);
  if (found == nullptr) return cudaErrorInvalidValue;
  const std::shared_ptr<SharedMemory> memory = found->memory;
  const int device = found->device;
  const std::shared_ptr<Block> block = found->block;
  const size_t taken = block != nullptr ? kBlockBytes : found->bytes;
  const int users = UsersOf(state, *found);
  if (users > 0 && !state.config.free_while_open) {
    AddMisuse(std::string(function) + " of " + Hex(pointer) + ", which " + std::to_string(users) +
              " process(es) still have open");
  }
  Unmap(state, lock, found->base, function);
  const bool is_last = block == nullptr || block->parts == 0;
  if (is_last && memory->Users() > 0) {
    state.held.push_back({device, taken, memory});
  } else if (is_last) {
    state.devices[static_cast<size_t>(device)].allocated -= taken;
  }
  SynchronizeDevice(state, lock, device);
  if (is_last) memory->CloseDescriptor();
  return cudaSuccess;
}

cudaError_t Register(void* pointer, size_t bytes, unsigned flags) {
  constexpr unsigned kFlags =
      cudaHostRegisterPortable | cudaHostRegisterMapped | cudaHostRegisterReadOnly;
  if (pointer == nullptr || bytes == 0 || (flags & ~kFlags) != 0) return cudaErrorInvalidValue;
  auto [state, lock] = LockState();
  const auto base = reinterpret_cast<uintptr_t>(pointer);
  const auto next = state.allocations.lower_bound(base);
  const bool is_taken = Find(state, pointer) != nullptr ||
                        (next != state.allocations.end() && next->first < base + bytes);
  if (is_taken) return cudaErrorHostMemoryAlreadyRegistered;
  state.allocations[base] = {.kind = MemoryKind::kPinned,
                             .base = base,
                             .bytes = bytes,
                             .host = static_cast<std::byte*>(pointer),
                             .device = CurrentDevice()};
  return cudaSuccess;
}

cudaError_t Unregister(const char* function, void* pointer) {
  auto [state, lock] = LockState();
  const Allocation* const found = FindToFree(state, pointer, MemoryKind::kPinned, function);
  if (found == nullptr) return cudaErrorHostMemoryNotRegistered;
  Unmap(state, lock, found->base, function);
  return cudaSuccess;
}

cudaError_t PointerAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  if (attributes == nullptr) return cudaErrorInvalidValue;
  *attributes = {};
  attributes->device = cudaInvalidDeviceId;
  auto [state, lock] = LockState();
  const Place place = Locate(state, {pointer, 1}, "cudaPointerGetAttributes");
  if (place.kind == PlaceKind::kPageable || place.kind == PlaceKind::kBad) return cudaSuccess;
  const bool is_pinned = place.kind == PlaceKind::kPinned;
  attributes->type = is_pinned ? cudaMemoryTypeHost : cudaMemoryTypeDevice;
  attributes->device = place.device;
  attributes->devicePointer = const_cast<void*>(pointer);
  attributes->hostPointer = is_pinned ? place.host : nullptr;
  return cudaSuccess;
}

cudaError_t MemoryInfo(size_t* free, size_t* total) {
  if (free == nullptr || total == nullptr) return cudaErrorInvalidValue;
  auto [state, lock] = LockState();
  ReleaseHeld(state);
  *total = state.config.memory_bytes;
  *free = *total - state.devices[static_cast<size_t>(CurrentDevice())].allocated;
  return cudaSuccess;
}

}  // namespace
}  // namespace sluice::fake_cuda

namespace sluice {

FakeCudaPool::FakeCudaPool() { fake_cuda::from_pool = true; }
FakeCudaPool::~FakeCudaPool() { fake_cuda::from_pool = false; }

}  // namespace sluice

namespace fake = sluice::fake_cuda;

extern "C" {

cudaError_t cudaMalloc(void** devPtr, size_t size) {
  return fake::Call(__func__, [&] { return fake::Malloc(devPtr, size); });
}

cudaError_t cudaFree(void* devPtr) {
  const char* const name = __func__;
  return fake::Call(name, fake::IfFailed::kDoIt, [&] { return fake::Free(name, devPtr); });
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  return fake::Call(__func__, [&] { return fake::MemoryInfo(free, total); });
}

cudaError_t cudaHostRegister(void* ptr, size_t size, unsigned int flags) {
  return fake::Call(__func__, [&] { return fake::Register(ptr, size, flags); });
}

cudaError_t cudaHostUnregister(void* ptr) {
  const char* const name = __func__;
  return fake::Call(name, fake::IfFailed::kDoIt, [&] { return fake::Unregister(name, ptr); });
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes* attributes, const void* ptr) {
  return fake::Call(__func__, [&] { return fake::PointerAttributes(attributes, ptr); });
}

}  // extern "C"
