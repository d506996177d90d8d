// The calls about devices, the driver and its functions.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "fakes/fake_cuda_call.h"
#include "fakes/fake_cuda_memory.h"
#include "fakes/fake_cuda_state.h"

namespace sluice::fake_cuda {
namespace {

// A device like an H200, as far as anybody asks.
constexpr int kMajor = 9;
constexpr int kMinor = 0;
constexpr int kMultiprocessors = 132;
constexpr int kThreadsPerMultiprocessor = 2048;
constexpr int kThreadsPerBlock = 1024;
constexpr int kWarp = 32;
constexpr int kL2Bytes = 50 << 20;
constexpr int kBusBits = 6144;
constexpr int kSharedBytes = 48 << 10;
constexpr int kCopyEngines = 3;
constexpr int kFirstBus = 0x10;

bool IsDevice(int device) {
  State& state = TheState();
  const Lock lock(state.mutex);
  return device >= 0 && static_cast<size_t>(device) < state.devices.size();
}

cudaError_t Properties(cudaDeviceProp* properties, int device) {
  if (properties == nullptr) return cudaErrorInvalidValue;
  if (!IsDevice(device)) return cudaErrorInvalidDevice;
  *properties = {};
  std::snprintf(properties->name, sizeof(properties->name), "Fake CUDA device");
  properties->totalGlobalMem = FakeCudaConfiguration().memory_bytes;
  properties->sharedMemPerBlock = kSharedBytes;
  properties->warpSize = kWarp;
  properties->maxThreadsPerBlock = kThreadsPerBlock;
  properties->major = kMajor;
  properties->minor = kMinor;
  properties->multiProcessorCount = kMultiprocessors;
  properties->canMapHostMemory = 1;
  properties->pciBusID = kFirstBus + device;
  properties->asyncEngineCount = kCopyEngines;
  properties->unifiedAddressing = 1;
  properties->memoryBusWidth = kBusBits;
  properties->l2CacheSize = kL2Bytes;
  properties->maxThreadsPerMultiProcessor = kThreadsPerMultiprocessor;
  properties->hostRegisterSupported = 1;
  properties->ipcEventSupported = 1;
  properties->hostNumaId = -1;
  return cudaSuccess;
}

// What the device has of an attribute; of those not named here, nothing.
int Attribute(cudaDeviceAttr attribute, int device) {
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock:
      return kThreadsPerBlock;
    case cudaDevAttrMaxGridDimX:
      return INT32_MAX;
    case cudaDevAttrMaxSharedMemoryPerBlock:
      return kSharedBytes;
    case cudaDevAttrWarpSize:
      return kWarp;
    case cudaDevAttrMultiProcessorCount:
      return kMultiprocessors;
    case cudaDevAttrPciBusId:
      return kFirstBus + device;
    case cudaDevAttrGlobalMemoryBusWidth:
      return kBusBits;
    case cudaDevAttrL2CacheSize:
      return kL2Bytes;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
      return kThreadsPerMultiprocessor;
    case cudaDevAttrAsyncEngineCount:
      return kCopyEngines;
    case cudaDevAttrComputeCapabilityMajor:
      return kMajor;
    case cudaDevAttrComputeCapabilityMinor:
      return kMinor;
    case cudaDevAttrHostNumaId:
      return -1;
    case cudaDevAttrCanMapHostMemory:
    case cudaDevAttrUnifiedAddressing:
    case cudaDevAttrStreamPrioritiesSupported:
    case cudaDevAttrCanUseHostPointerForRegisteredMem:
    case cudaDevAttrHostRegisterSupported:
    case cudaDevAttrHostRegisterReadOnlySupported:
    case cudaDevAttrIpcEventSupport:
      return 1;
    default:
      return 0;
  }
}

cudaError_t CanAccessPeer(int* can, int device, int peer) {
  if (can == nullptr) return cudaErrorInvalidValue;
  if (!IsDevice(device) || !IsDevice(peer)) return cudaErrorInvalidDevice;
  *can = device != peer && FakeCudaConfiguration().peer_access ? 1 : 0;
  return cudaSuccess;
}

cudaError_t EnablePeer(int peer, unsigned flags) {
  const int device = CurrentDevice();
  if (flags != 0) return cudaErrorInvalidValue;
  if (!IsDevice(peer) || peer == device) return cudaErrorInvalidDevice;
  State& state = TheState();
  const Lock lock(state.mutex);
  if (!state.config.peer_access) return cudaErrorPeerAccessUnsupported;
  const bool is_new = state.devices[static_cast<size_t>(device)].peers.insert(peer).second;
  return is_new ? cudaSuccess : cudaErrorPeerAccessAlreadyEnabled;
}

// cuMemGetAddressRange of the driver: its results are CUresult's, whose numbers are the same.
int MemGetAddressRange(unsigned long long* base, size_t* bytes, unsigned long long pointer) {
  State& state = TheState();
  const Lock lock(state.mutex);
  const Allocation* const found = Find(state, PointerTo(static_cast<uintptr_t>(pointer)));
  if (found == nullptr || found->kind == MemoryKind::kPinned ||
      pointer - found->base >= found->bytes) {
    return cudaErrorInvalidValue;
  }
  if (base != nullptr) *base = found->base;
  if (bytes != nullptr) *bytes = found->bytes;
  return cudaSuccess;
}

cudaError_t DriverEntryPoint(std::string_view symbol, void** function,
                             cudaDriverEntryPointQueryResult* result) {
  if (function == nullptr) return cudaErrorInvalidValue;
  const bool is_known = symbol == "cuMemGetAddressRange";
  *function = is_known ? reinterpret_cast<void*>(MemGetAddressRange) : nullptr;
  if (result != nullptr) {
    *result = is_known ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  }
  return is_known || result != nullptr ? cudaSuccess : cudaErrorSymbolNotFound;
}

}  // namespace
}  // namespace sluice::fake_cuda

namespace fake = sluice::fake_cuda;

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  if (count != nullptr) *count = 0;
  return fake::Call(__func__, [&] {
    if (count == nullptr) return cudaErrorInvalidValue;
    *count = sluice::FakeCudaConfiguration().devices;
    return cudaSuccess;
  });
}

cudaError_t cudaSetDevice(int device) {
  return fake::Call(__func__, [&] {
    if (!fake::IsDevice(device)) return cudaErrorInvalidDevice;
    fake::SetCurrentDevice(device);
    return cudaSuccess;
  });
}

cudaError_t cudaGetDevice(int* device) {
  return fake::Call(__func__, [&] {
    if (device == nullptr) return cudaErrorInvalidValue;
    *device = fake::CurrentDevice();
    return cudaSuccess;
  });
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp* prop, int device) {
  return fake::Call(__func__, [&] { return fake::Properties(prop, device); });
}

cudaError_t cudaDeviceGetAttribute(int* value, enum cudaDeviceAttr attr, int device) {
  return fake::Call(__func__, [&] {
    if (value == nullptr) return cudaErrorInvalidValue;
    if (!fake::IsDevice(device)) return cudaErrorInvalidDevice;
    *value = fake::Attribute(attr, device);
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetPCIBusId(char* pciBusId, int len, int device) {
  return fake::Call(__func__, [&] {
    constexpr int kLongest = 13;
    if (pciBusId == nullptr || len < kLongest) return cudaErrorInvalidValue;
    if (!fake::IsDevice(device)) return cudaErrorInvalidDevice;
    std::snprintf(pciBusId, static_cast<size_t>(len), "0000:%02X:00.0", fake::kFirstBus + device);
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* leastPriority, int* greatestPriority) {
  return fake::Call(__func__, [&] {
    constexpr int kGreatest = -5;  // smaller numbers are more urgent
    if (leastPriority != nullptr) *leastPriority = 0;
    if (greatestPriority != nullptr) *greatestPriority = kGreatest;
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceCanAccessPeer(int* canAccessPeer, int device, int peerDevice) {
  return fake::Call(__func__,
                    [&] { return fake::CanAccessPeer(canAccessPeer, device, peerDevice); });
}

cudaError_t cudaDeviceEnablePeerAccess(int peerDevice, unsigned int flags) {
  return fake::Call(__func__, [&] { return fake::EnablePeer(peerDevice, flags); });
}

// Works without a device and with any driver.
cudaError_t cudaDriverGetVersion(int* driverVersion) {
  const cudaError_t failure = fake::CountCall(__func__);
  if (failure != cudaSuccess) return fake::Remember(failure);
  if (driverVersion == nullptr) return fake::Remember(cudaErrorInvalidValue);
  *driverVersion = sluice::FakeCudaConfiguration().driver_version;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* runtimeVersion) {
  const cudaError_t failure = fake::CountCall(__func__);
  if (failure != cudaSuccess) return fake::Remember(failure);
  if (runtimeVersion == nullptr) return fake::Remember(cudaErrorInvalidValue);
  *runtimeVersion = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** funcPtr, unsigned int,
                                             unsigned long long,
                                             enum cudaDriverEntryPointQueryResult* driverStatus) {
  return fake::Call(__func__, [&] {
    return symbol == nullptr ? cudaErrorInvalidValue
                             : fake::DriverEntryPoint(symbol, funcPtr, driverStatus);
  });
}

}  // extern "C"
