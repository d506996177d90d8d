// Handles of memory and events for other processes on the node.
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

#include "fakes/fake_cuda_block.h"
#include "fakes/fake_cuda_call.h"
#include "fakes/fake_cuda_context.h"
#include "fakes/fake_cuda_event.h"
#include "fakes/fake_cuda_memory.h"
#include "fakes/fake_cuda_state.h"
#include "fakes/fake_cuda_stream.h"
#include "fakes/fake_shared_memory.h"

namespace sluice::fake_cuda {
namespace {

// What is in a handle.
struct Ticket {
  uint32_t magic;
  int32_t device;  // as all processes know it
  SharedKey key;
  // Of memory: where its owner has it, which may be a block, and what of it was meant.
  uint64_t base;
  uint64_t bytes;
  uint32_t offset;
  uint32_t is_block;
};
constexpr uint32_t kMemoryMagic = 0x6d656d31;
constexpr uint32_t kEventMagic = 0x65766e31;
static_assert(sizeof(Ticket) <= CUDA_IPC_HANDLE_SIZE);

template <class Handle>
void Write(const Ticket& ticket, Handle& handle) {
  handle = {};
  std::memcpy(handle.reserved, &ticket, sizeof(ticket));
}

// The memory of a ticket, if this process may open it.
cudaError_t Open(const State& state, const Ticket& ticket, uint32_t magic,
                 std::shared_ptr<SharedMemory>& memory) {
  if (ticket.magic != magic) return cudaErrorInvalidValue;
  memory = SharedMemory::Open(ticket.key);
  if (memory == nullptr) return cudaErrorMapBufferObjectFailed;
  // The vendor's says this too: the maker has the memory itself.
  if (memory->is_mine() && !state.config.same_process_ipc) return cudaErrorDeviceUninitialized;
  return cudaSuccess;
}

template <class Handle>
Ticket Read(const Handle& handle) {
  Ticket ticket;
  std::memcpy(&ticket, handle.reserved, sizeof(ticket));
  return ticket;
}

// Where ranges are blocks, the first byte of one stands for all that is in it.
const Allocation* FindToShare(const State& state, const void* pointer) {
  const Allocation* const found = Find(state, pointer);
  const Block* const block = FindBlock(state, pointer);
  if (found != nullptr || block == nullptr || !state.config.ranges_are_blocks) return found;
  return &state.allocations.lower_bound(block->base)->second;
}

cudaError_t GetMemoryHandle(cudaIpcMemHandle_t* handle, const void* pointer) {
  auto [state, lock] = LockState();
  const Allocation* const found = FindToShare(state, pointer);
  if (handle == nullptr) return cudaErrorInvalidValue;
  if (found == nullptr || found->kind != MemoryKind::kDevice) {
    AddMisuse("cudaIpcGetMemHandle of " + Hex(pointer) + ", which is no memory of this process's");
    return cudaErrorInvalidValue;
  }
  if (found->device != CurrentDevice()) {
    AddMisuse("cudaIpcGetMemHandle of " + Hex(pointer) + ", which is memory of device " +
              std::to_string(found->device) + ", while device " + std::to_string(CurrentDevice()) +
              " is current");
    return cudaErrorInvalidValue;
  }
  if (found->is_of_pool) return cudaErrorInvalidValue;
  Ticket ticket = {.magic = kMemoryMagic,
                   .device = CommonNumber(state, found->device),
                   .key = found->memory->key(),
                   .base = found->base,
                   .bytes = found->bytes,
                   .offset = 0,
                   .is_block = 0};
  if (const Block* const block = found->block.get(); block != nullptr) {
    ticket.base = block->base;
    ticket.bytes = kBlockBytes;
    ticket.is_block = 1;
    const bool is_named = !state.config.handles_open_blocks;
    ticket.offset = is_named ? static_cast<uint32_t>(found->base - block->base) : 0;
  }
  Write(ticket, *handle);
  return cudaSuccess;
}

// What is still open of memory that its owner has freed, and whose place is another one's now.
bool Overlap(const Allocation& open, const Ticket& ticket) {
  return open.memory->key().process == ticket.key.process &&
         open.owner_base < ticket.base + ticket.bytes && ticket.base < open.owner_base + open.bytes;
}

// What a handle gives: where the allocation is in what was mapped, or where that begins.
void CountOpen(Allocation& mapped, const Ticket& ticket, void** pointer) {
  ++mapped.opens[mapped.base + ticket.offset];
  if (mapped.is_imported_block) ++OpensInBlock(*mapped.memory, ticket.offset);
  *pointer = PointerTo(mapped.base + ticket.offset);
}

cudaError_t OpenMemory(void** pointer, const cudaIpcMemHandle_t& handle, unsigned flags) {
  if (pointer == nullptr || flags != cudaIpcMemLazyEnablePeerAccess) return cudaErrorInvalidValue;
  auto [state, lock] = LockState();
  const Ticket ticket = Read(handle);
  std::shared_ptr<SharedMemory> memory;
  const cudaError_t error = Open(state, ticket, kMemoryMagic, memory);
  if (error != cudaSuccess) return error;
  const int device = CurrentDevice();
  const bool is_own = ticket.device == CommonNumber(state, device);
  if (!is_own && !state.config.peer_access) return cudaErrorPeerAccessUnsupported;
  // Ranks as threads do not get into one another's way, unless a test has one of them open all.
  const bool tells_apart = state.config.reuse_addresses || !state.config.same_process_ipc;
  bool is_in_the_way = false;
  for (auto& [base, allocation] : state.allocations) {
    if (allocation.kind != MemoryKind::kImported || allocation.device != device) continue;
    if (allocation.memory == memory) {
      CountOpen(allocation, ticket, pointer);
      return cudaSuccess;
    }
    is_in_the_way |= tells_apart && Overlap(allocation, ticket);
  }
  if (is_in_the_way) return cudaErrorAlreadyMapped;
  Allocation* const made = MapDevice(state, MemoryKind::kImported, memory, ticket.bytes, device);
  if (made == nullptr) return cudaErrorMapBufferObjectFailed;
  made->owner_base = ticket.base;
  made->is_imported_block = ticket.is_block != 0;
  memory->AddUser();
  CountOpen(*made, ticket, pointer);
  return cudaSuccess;
}

// Waits for all that the device does, as a driver may.
cudaError_t CloseMemory(const char* function, void* pointer) {
  CountHostWait();
  auto [state, lock] = LockState();
  Allocation* const found = Find(state, pointer);
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  if (found == nullptr || found->kind != MemoryKind::kImported || !found->opens.contains(address)) {
    AddMisuse(std::string(function) + " of " + Hex(pointer) + ", which is not open");
    return cudaErrorInvalidValue;
  }
  if (found->device != CurrentDevice()) {
    AddMisuse(std::string(function) + " of " + Hex(pointer) + ", which device " +
              std::to_string(found->device) + " has open, while device " +
              std::to_string(CurrentDevice()) + " is current");
  }
  if (found->is_imported_block) --OpensInBlock(*found->memory, address - found->base);
  if (--found->opens.at(address) == 0) found->opens.erase(address);
  if (!found->opens.empty()) return cudaSuccess;
  const std::shared_ptr<SharedMemory> memory = found->memory;
  const int device = found->device;
  Unmap(state, lock, found->base, function);
  memory->RemoveUser();
  SynchronizeDevice(state, lock, device);
  return cudaSuccess;
}

cudaError_t GetEventHandle(cudaIpcEventHandle_t* handle, cudaEvent_t event_handle) {
  auto [state, lock] = LockState();
  const std::shared_ptr<Event> event = FindEvent(state, event_handle, "cudaIpcGetEventHandle");
  if (event == nullptr) return cudaErrorInvalidResourceHandle;
  if (handle == nullptr || event->shared == nullptr || event->is_imported) {
    return cudaErrorInvalidValue;
  }
  event->is_exported = true;
  Ticket ticket = {};
  ticket.magic = kEventMagic;
  ticket.device = CommonNumber(state, event->device);
  ticket.key = event->memory->key();
  Write(ticket, *handle);
  return cudaSuccess;
}

cudaError_t OpenEvent(cudaEvent_t* event, const cudaIpcEventHandle_t& handle) {
  if (event == nullptr) return cudaErrorInvalidValue;
  auto [state, lock] = LockState();
  std::shared_ptr<SharedMemory> memory;
  const cudaError_t error = Open(state, Read(handle), kEventMagic, memory);
  if (error != cudaSuccess) return error;
  if (!HasRoomForEvent(state)) return cudaErrorMemoryAllocation;
  const std::shared_ptr<Event> made =
      MakeEvent(state, cudaEventInterprocess | cudaEventDisableTiming);
  made->is_imported = true;
  Share(*made, memory);
  *event = static_cast<cudaEvent_t>(PointerTo(made->handle));
  return cudaSuccess;
}

}  // namespace
}  // namespace sluice::fake_cuda

namespace fake = sluice::fake_cuda;

extern "C" {

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* devPtr) {
  return fake::Call(__func__, [&] { return fake::GetMemoryHandle(handle, devPtr); });
}

cudaError_t cudaIpcOpenMemHandle(void** devPtr, cudaIpcMemHandle_t handle, unsigned int flags) {
  return fake::Call(__func__, [&] { return fake::OpenMemory(devPtr, handle, flags); });
}

cudaError_t cudaIpcCloseMemHandle(void* devPtr) {
  const char* const name = __func__;
  return fake::Call(name, fake::IfFailed::kDoIt, [&] { return fake::CloseMemory(name, devPtr); });
}

cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t* handle, cudaEvent_t event) {
  return fake::Call(__func__, [&] { return fake::GetEventHandle(handle, event); });
}

cudaError_t cudaIpcOpenEventHandle(cudaEvent_t* event, cudaIpcEventHandle_t handle) {
  return fake::Call(__func__, [&] { return fake::OpenEvent(event, handle); });
}

}  // extern "C"
