// Handles of memory and events for other processes on the node.
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

#include "fakes/fake_cuda_call.h"
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
  int32_t device;
  SharedKey key;
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
  Write({kMemoryMagic, found->device, found->memory->key()}, *handle);
  return cudaSuccess;
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
  if (ticket.device != device && !state.config.peer_access) return cudaErrorPeerAccessUnsupported;
  for (auto& [base, allocation] : state.allocations) {
    if (allocation.kind != MemoryKind::kImported || allocation.memory != memory ||
        allocation.device != device) {
      continue;
    }
    ++allocation.opens;
    *pointer = PointerTo(base);
    return cudaSuccess;
  }
  const Allocation* const made = MapDevice(state, MemoryKind::kImported, memory, device);
  if (made == nullptr) return cudaErrorMapBufferObjectFailed;
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
  Write({kEventMagic, event->device, event->memory->key()}, *handle);
  return cudaSuccess;
}

cudaError_t OpenEvent(cudaEvent_t* event, const cudaIpcEventHandle_t& handle) {
  if (event == nullptr) return cudaErrorInvalidValue;
  State& state = TheState();
  const Lock lock(state.mutex);
  std::shared_ptr<SharedMemory> memory;
  const cudaError_t error = Open(state, Read(handle), kEventMagic, memory);
  if (error != cudaSuccess) return error;
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
