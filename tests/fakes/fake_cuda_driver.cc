// The driver's functions that the runtime finds by name. Their results are CUresult's, whose
// numbers are those of the runtime's errors.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

#include "fakes/fake_cuda_block.h"
#include "fakes/fake_cuda_call.h"
#include "fakes/fake_cuda_context.h"
#include "fakes/fake_cuda_memory.h"
#include "fakes/fake_cuda_state.h"

namespace sluice::fake_cuda {
namespace {

constexpr int kInvalidContext = 201;
constexpr int kNotFound = 500;

// Contexts are the addresses of these.
constexpr size_t kContextsMax = 64;
std::array<std::byte, kContextsMax> contexts;

void* ContextOf(int device) { return &contexts[static_cast<size_t>(device)]; }

// The device whose context it is, if there is such a device.
std::optional<int> DeviceOf(const State& state, const void* context) {
  const auto* const at = static_cast<const std::byte*>(context);
  if (context == nullptr || at < contexts.data() || at >= contexts.data() + state.devices.size()) {
    return std::nullopt;
  }
  return static_cast<int>(at - contexts.data());
}

int Init(unsigned flags) {
  if (const cudaError_t error = CountDriverCall("cuInit"); error != cudaSuccess) return error;
  return flags == 0 ? cudaSuccess : cudaErrorInvalidValue;
}

int DeviceGet(int* device, int ordinal) {
  if (const cudaError_t error = CountDriverCall("cuDeviceGet"); error != cudaSuccess) return error;
  auto [state, lock] = LockState();
  if (device == nullptr) return cudaErrorInvalidValue;
  if (ordinal < 0 || static_cast<size_t>(ordinal) >= state.devices.size()) {
    return cudaErrorInvalidDevice;
  }
  *device = ordinal;
  return cudaSuccess;
}

int DevicePrimaryCtxRetain(void** context, int device) {
  const cudaError_t error = CountDriverCall("cuDevicePrimaryCtxRetain");
  if (error != cudaSuccess) return error;
  auto [state, lock] = LockState();
  if (context == nullptr) return cudaErrorInvalidValue;
  const auto index = static_cast<size_t>(device);
  if (device < 0 || index >= state.devices.size() || index >= kContextsMax) {
    return cudaErrorInvalidDevice;
  }
  state.devices[index].has_context = true;
  *context = ContextOf(device);
  return cudaSuccess;
}

int CtxGetCurrent(void** context) {
  const cudaError_t error = CountDriverCall("cuCtxGetCurrent");
  if (error != cudaSuccess) return error;
  if (context == nullptr) return cudaErrorInvalidValue;
  const std::optional<int> current = CurrentContext();
  *context = current.has_value() ? ContextOf(*current) : nullptr;
  return cudaSuccess;
}

int CtxPushCurrent(void* context) {
  const cudaError_t error = CountDriverCall("cuCtxPushCurrent");
  if (error != cudaSuccess) return error;
  auto [state, lock] = LockState();
  const std::optional<int> device = DeviceOf(state, context);
  if (!device.has_value()) return kInvalidContext;
  PushContext(state, *device);
  return cudaSuccess;
}

// Pops although it is to fail: nothing is left of what gives back.
int CtxPopCurrent(void** context) {
  const cudaError_t error = CountDriverCall("cuCtxPopCurrent");
  const std::optional<int> popped = PopContext();
  if (!popped.has_value()) return kInvalidContext;
  if (context != nullptr) *context = ContextOf(*popped);
  return error;
}

int ThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  const cudaError_t error = CountDriverCall("cuThreadExchangeStreamCaptureMode");
  return error != cudaSuccess ? error : ExchangeCaptureMode(mode);
}

// Of the current context's device only.
int MemGetAddressRange(unsigned long long* base, size_t* bytes, unsigned long long pointer) {
  const cudaError_t error = CountDriverCall("cuMemGetAddressRange");
  if (error != cudaSuccess) return error;
  const std::optional<int> current = CurrentContext();
  if (!current.has_value()) return kInvalidContext;
  auto [state, lock] = LockState();
  const Allocation* const found = Find(state, PointerTo(static_cast<uintptr_t>(pointer)));
  if (found == nullptr || found->kind == MemoryKind::kPinned ||
      pointer - found->base >= found->bytes) {
    return cudaErrorInvalidValue;
  }
  if (found->device != *current) return kNotFound;
  const bool of_block = state.config.ranges_are_blocks && found->block != nullptr;
  if (base != nullptr) *base = of_block ? found->block->base : found->base;
  if (bytes != nullptr) *bytes = of_block ? kBlockBytes : found->bytes;
  return cudaSuccess;
}

// Two attributes: which allocation it is, and whether cudaIpcGetMemHandle takes the memory.
int PointerGetAttribute(void* data, int attribute, unsigned long long pointer) {
  constexpr int kBufferId = 7;
  constexpr int kIsLegacyCudaIpcCapable = 10;
  const cudaError_t error = CountDriverCall("cuPointerGetAttribute");
  if (error != cudaSuccess) return error;
  auto [state, lock] = LockState();
  const Allocation* const found = Find(state, PointerTo(static_cast<uintptr_t>(pointer)));
  if (data == nullptr || found == nullptr || pointer - found->base >= found->bytes) {
    return cudaErrorInvalidValue;
  }
  if (attribute == kBufferId) {
    std::memcpy(data, &found->id, sizeof(found->id));
    return cudaSuccess;
  }
  if (attribute != kIsLegacyCudaIpcCapable) return cudaErrorInvalidValue;
  const bool is_capable = found->kind == MemoryKind::kDevice && !found->is_of_pool;
  std::memcpy(data, &is_capable, sizeof(is_capable));
  return cudaSuccess;
}

void* Find(std::string_view symbol) {
  const struct {
    std::string_view name;
    void* function;
  } functions[] = {
      {"cuInit", reinterpret_cast<void*>(Init)},
      {"cuDeviceGet", reinterpret_cast<void*>(DeviceGet)},
      {"cuDevicePrimaryCtxRetain", reinterpret_cast<void*>(DevicePrimaryCtxRetain)},
      {"cuCtxGetCurrent", reinterpret_cast<void*>(CtxGetCurrent)},
      {"cuCtxPushCurrent", reinterpret_cast<void*>(CtxPushCurrent)},
      {"cuCtxPopCurrent", reinterpret_cast<void*>(CtxPopCurrent)},
      {"cuThreadExchangeStreamCaptureMode",
       reinterpret_cast<void*>(ThreadExchangeStreamCaptureMode)},
      {"cuMemGetAddressRange", reinterpret_cast<void*>(MemGetAddressRange)},
      {"cuPointerGetAttribute", reinterpret_cast<void*>(PointerGetAttribute)},
  };
  for (const auto& [name, function] : functions) {
    if (name == symbol) return function;
  }
  return nullptr;
}

cudaError_t DriverEntryPoint(std::string_view symbol, void** function,
                             cudaDriverEntryPointQueryResult* result) {
  if (function == nullptr) return cudaErrorInvalidValue;
  *function = Find(symbol);
  const bool is_known = *function != nullptr;
  if (result != nullptr) {
    *result = is_known ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  }
  return is_known || result != nullptr ? cudaSuccess : cudaErrorSymbolNotFound;
}

}  // namespace
}  // namespace sluice::fake_cuda

namespace fake = sluice::fake_cuda;

extern "C" {

cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** funcPtr, unsigned int,
                                             unsigned long long,
                                             enum cudaDriverEntryPointQueryResult* driverStatus) {
  return fake::Query(__func__, [&] {
    return symbol == nullptr ? cudaErrorInvalidValue
                             : fake::DriverEntryPoint(symbol, funcPtr, driverStatus);
  });
}

}  // extern "C"
