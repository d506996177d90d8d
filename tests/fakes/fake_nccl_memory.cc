// NCCL's allocator and registration. As since NCCL 2.24, registering what came from cudaMalloc
// succeeds and changes nothing.
#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "fakes/fake_cuda_call.h"
#include "fakes/fake_cuda_context.h"
#include "fakes/fake_cuda_memory.h"
#include "fakes/fake_cuda_state.h"
#include "fakes/fake_nccl.h"
#include "fakes/fake_nccl_comm.h"
#include "fakes/locked.h"

namespace sluice::fake_nccl {
namespace {

struct Memory {
  std::mutex mutex;
  std::map<const std::byte*, size_t> given_out;  // by ncclMemAlloc
  int64_t registered_bytes = 0;
  uintptr_t next_handle = 0x200000;
};

Memory& TheMemory() {
  static auto* const memory = new Memory;
  return *memory;
}

bool IsGivenOut(const Memory& memory, const std::byte* data, size_t bytes) {
  auto next = memory.given_out.upper_bound(data);
  if (next == memory.given_out.begin()) return false;
  --next;
  return data + bytes <= next->first + next->second;
}

ncclResult_t Allocate(void** pointer, size_t bytes) {
  if (pointer == nullptr || bytes == 0) return ncclInvalidArgument;
  if (cudaMalloc(pointer, bytes) != cudaSuccess) {
    (void)cudaGetLastError();
    return Fail(ncclUnhandledCudaError, "Cuda failure 2 'out of memory'");
  }
  const Locked memory(TheMemory());
  memory->given_out[static_cast<const std::byte*>(*pointer)] = bytes;
  return ncclSuccess;
}

ncclResult_t Free(void* pointer) {
  if (pointer == nullptr) return ncclSuccess;
  const auto* const data = static_cast<const std::byte*>(pointer);
  for (const std::shared_ptr<Comm>& comm : LiveComms()) {
    if (!comm->is_aborted && IsRegistered(*comm, data, 1)) {
      fake_cuda::AddMisuse("ncclMemFree of memory that is registered, by rank " +
                           std::to_string(comm->rank));
    }
  }
  Memory& memory = TheMemory();
  {
    const std::lock_guard lock(memory.mutex);
    if (memory.given_out.erase(data) == 0) {
      fake_cuda::AddMisuse("ncclMemFree of what ncclMemAlloc did not give out");
    }
  }
  return cudaFree(pointer) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

ncclResult_t Register(Comm& comm, void* buffer, size_t bytes, void** handle) {
  if (buffer == nullptr || bytes == 0 || handle == nullptr) return ncclInvalidArgument;
  {
    auto [state, lock] = fake_cuda::LockState();
    if (fake_cuda::DeviceBytes(state, {buffer, bytes}, comm.device, "ncclCommRegister") ==
        nullptr) {
      return Fail(ncclInvalidArgument, "ncclCommRegister of what is no device memory");
    }
  }
  const Locked memory(TheMemory());
  const auto* const data = static_cast<const std::byte*>(buffer);
  const bool is_real = IsGivenOut(*memory, data, bytes);
  comm.registrations.push_back({memory->next_handle += 0x10, data, bytes, is_real});
  if (is_real) memory->registered_bytes += static_cast<int64_t>(bytes);
  *handle = fake_cuda::PointerTo(comm.registrations.back().handle);
  return ncclSuccess;
}

ncclResult_t Deregister(Comm& comm, const void* handle) {
  const std::lock_guard lock(TheMemory().mutex);
  const size_t erased = std::erase_if(comm.registrations, [&](const Registration& known) {
    return known.handle == reinterpret_cast<uintptr_t>(handle);
  });
  return erased != 0 ? ncclSuccess
                     : Misuse(ncclInvalidUsage, "ncclCommDeregister of what is not registered");
}

}  // namespace

bool IsRegistered(const Comm& comm, const std::byte* data, size_t bytes) {
  const std::lock_guard lock(TheMemory().mutex);
  return std::any_of(
      comm.registrations.begin(), comm.registrations.end(), [&](const Registration& known) {
        return known.is_real && data >= known.data && data + bytes <= known.data + known.bytes;
      });
}

size_t Registrations(const Comm& comm) {
  const std::lock_guard lock(TheMemory().mutex);
  return comm.registrations.size();
}

void ForgetMemory() {
  const Locked memory(TheMemory());
  memory->given_out.clear();
  memory->registered_bytes = 0;
}

}  // namespace sluice::fake_nccl

namespace sluice {

int64_t FakeNcclRegisteredBytes() { return Locked(fake_nccl::TheMemory())->registered_bytes; }

}  // namespace sluice

namespace fake = sluice::fake_nccl;

extern "C" {

ncclResult_t ncclMemAlloc(void** ptr, size_t size) {
  const ncclResult_t failure = fake::CountCall(__func__);
  return failure != ncclSuccess ? failure : fake::Allocate(ptr, size);
}

ncclResult_t ncclMemFree(void* ptr) {
  const ncclResult_t failure = fake::CountCall(__func__);
  const ncclResult_t result = fake::Free(ptr);
  return failure != ncclSuccess ? failure : result;
}

ncclResult_t ncclCommRegister(const ncclComm_t handle, void* buff, size_t size, void** out) {
  return fake::Call(__func__, fake::IfFailed::kNothing, handle, [&](const auto& comm) {
    const ncclResult_t ready = fake::CheckReady(*comm, "ncclCommRegister");
    return ready != ncclSuccess ? ready : fake::Register(*comm, buff, size, out);
  });
}

ncclResult_t ncclCommDeregister(const ncclComm_t handle, void* registration) {
  const sluice::fake_cuda::DeviceSetAgain device;
  return fake::Call(__func__, fake::IfFailed::kDoIt, handle,
                    [&](const auto& comm) { return fake::Deregister(*comm, registration); });
}

}  // extern "C"
