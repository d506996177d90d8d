// Handles of memory and events for other processes on the node.
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

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
  uint64_t base;  // of memory: where its owner has it
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

cudaError_t GetMemoryHandle(cudaIpcMemHandle_t* handle, const void* pointer) {
  State& state = TheState();
  const Lock lock(state.mutex);
  const Allocation* const found = Find(state, pointer);
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
  const int device = CommonNumber(state, found->device);
  Write({kMemoryMagic, device, found->memory->key(), found->base}, *handle);
  return cudaSuccess;
}

// What is still open of memory that its owner has freed, and whose place is another one's now.
bool Overlap(const Allocation& open, const Ticket& ticket) {
  return open.memory->key().process == ticket.key.process &&
         open.owner_base < ticket.base + ticket.key.bytes &&
         ticket.base < open.owner_base + open.bytes;
}

cudaError_t OpenMemory(void** pointer, const cudaIpcMemHandle_t& handle, unsigned flags) {
  if (pointer == nullptr || flags != cudaIpcMemLazyEnablePeerAccess) return cudaErrorInvalidValue;
  State& state = TheState();
  const Lock lock(state.mutex);
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
      ++allocation.opens;
      *pointer = PointerTo(base);
      return cudaSuccess;
    }
    is_in_the_way |= tells_apart && Overlap(allocation, ticket);
  }
  if (is_in_the_way) return cudaErrorAlreadyMapped;
  Allocation* const made = MapDevice(state, MemoryKind::kImported, memory, device);
  if (made == nullptr) return cudaErrorMapBufferObjectFailed;
  made->owner_base = ticket.base;
  memory->AddUser();
  *pointer = PointerTo(made->base);
  return cudaSuccess;
}

cudaError_t CloseMemory(const char* function, void* pointer) {
  State& state = TheState();
  Lock lock(state.mutex);
  Allocation* const found = Find(state, pointer);
  if (found == nullptr || found->kind != MemoryKind::kImported ||
      found->base != reinterpret_cast<uintptr_t>(pointer)) {
    AddMisuse(std::string(function) + " of " + Hex(pointer) + ", which is not open");
    return cudaErrorInvalidValue;
  }
  if (found->device != CurrentDevice()) {
    AddMisuse(std::string(function) + " of " + Hex(pointer) + ", which device " +
              std::to_string(found->device) + " has open, while device " +
              std::to_string(CurrentDevice()) + " is current");
  }
  if (--found->opens > 0) return cudaSuccess;
  const std::shared_ptr<SharedMemory> memory = found->memory;
  Unmap(state, lock, found->base, function);
  memory->RemoveUser();
  return cudaSuccess;
}

cudaError_t GetEventHandle(cudaIpcEventHandle_t* handle, cudaEvent_t event_handle) {
  State& state = TheState();
  const Lock lock(state.mutex);
  const std::shared_ptr<Event> event = FindEvent(state, event_handle, "cudaIpcGetEventHandle");
  if (event == nullptr) return cudaErrorInvalidResourceHandle;
  if (handle == nullptr || event->shared == nullptr || event->is_imported) {
    return cudaErrorInvalidValue;
  }
  event->is_exported = true;
  Write({kEventMagic, CommonNumber(state, event->device), event->memory->key(), 0}, *handle);
  return cudaSuccess;
}

cudaError_t OpenEvent(cudaEvent_t* event, const cudaIpcEventHandle_t& handle) {
  if (event == nullptr) return cudaErrorInvalidValue;
  State& state = TheState();
  const Lock lock(state.mutex);
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
