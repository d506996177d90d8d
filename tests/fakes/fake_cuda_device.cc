// The calls about devices and versions.
#include <cstdint>
#include <cstdio>
#include <map>

#include "fakes/fake_cuda_call.h"
#include "fakes/fake_cuda_context.h"
#include "fakes/fake_cuda_state.h"

namespace sluice::fake_cuda {
namespace {

// A device like an H200, as far as anybody asks.
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
  auto [state, lock] = LockState();
  return device >= 0 && static_cast<size_t>(device) < state.devices.size();
}

// No two devices of the machine have the same.
int BusOf(int device) {
  auto [state, lock] = LockState();
  return kFirstBus + CommonNumber(state, device);
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
  properties->major = FakeCudaConfiguration().compute_capability / 10;
  properties->minor = FakeCudaConfiguration().compute_capability % 10;
  properties->multiProcessorCount = kMultiprocessors;
  properties->canMapHostMemory = 1;
  properties->pciBusID = BusOf(device);
  properties->asyncEngineCount = kCopyEngines;
  properties->unifiedAddressing = 1;
  properties->memoryBusWidth = kBusBits;
  properties->l2CacheSize = kL2Bytes;
  properties->maxThreadsPerMultiProcessor = kThreadsPerMultiprocessor;
  properties->hostRegisterSupported = 1;
  properties->ipcEventSupported = 1;
  properties->hostNumaId = FakeCudaConfiguration().numa_node;
  return cudaSuccess;
}

// What the device has of an attribute; of those not named here, nothing.
int Attribute(cudaDeviceAttr attribute, int device) {
  const FakeCudaConfig config = FakeCudaConfiguration();
  const std::map<cudaDeviceAttr, int> attributes = {
      {cudaDevAttrMaxThreadsPerBlock, kThreadsPerBlock},
      {cudaDevAttrMaxGridDimX, INT32_MAX},
      {cudaDevAttrMaxSharedMemoryPerBlock, kSharedBytes},
      {cudaDevAttrWarpSize, kWarp},
      {cudaDevAttrMultiProcessorCount, kMultiprocessors},
      {cudaDevAttrPciBusId, BusOf(device)},
      {cudaDevAttrGlobalMemoryBusWidth, kBusBits},
      {cudaDevAttrL2CacheSize, kL2Bytes},
      {cudaDevAttrMaxThreadsPerMultiProcessor, kThreadsPerMultiprocessor},
      {cudaDevAttrAsyncEngineCount, kCopyEngines},
      {cudaDevAttrComputeCapabilityMajor, config.compute_capability / 10},
      {cudaDevAttrComputeCapabilityMinor, config.compute_capability % 10},
      {cudaDevAttrHostNumaId, config.numa_node},
      {cudaDevAttrCanMapHostMemory, 1},
      {cudaDevAttrUnifiedAddressing, 1},
      {cudaDevAttrStreamPrioritiesSupported, 1},
      {cudaDevAttrCanUseHostPointerForRegisteredMem, 1},
      {cudaDevAttrHostRegisterSupported, 1},
      {cudaDevAttrHostRegisterReadOnlySupported, 1},
      {cudaDevAttrIpcEventSupport, 1},
  };
  const auto found = attributes.find(attribute);
  return found == attributes.end() ? 0 : found->second;
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
  auto [state, lock] = LockState();
  if (!state.config.peer_access) return cudaErrorPeerAccessUnsupported;
  state.devices[static_cast<size_t>(peer)].has_context = true;
  const bool is_new = state.devices[static_cast<size_t>(device)].peers.insert(peer).second;
  return is_new ? cudaSuccess : cudaErrorPeerAccessAlreadyEnabled;
}

// Works without a device and with any driver.
cudaError_t Version(const char* function, int* version, int number) {
  const cudaError_t failure = CountCall(function);
  if (failure != cudaSuccess) return Remember(failure);
  if (version == nullptr) return Remember(cudaErrorInvalidValue);
  *version = number;
  return cudaSuccess;
}

}  // namespace
}  // namespace sluice::fake_cuda

namespace fake = sluice::fake_cuda;

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  if (count != nullptr) *count = 0;
  return fake::Query(__func__, [&] {
    if (count == nullptr) return cudaErrorInvalidValue;
    auto [state, lock] = fake::LockState();
    *count = static_cast<int>(state.devices.size());
    return cudaSuccess;
  });
}

cudaError_t cudaSetDevice(int device) {
  return fake::Query(__func__, [&] {
    if (!fake::IsDevice(device)) return cudaErrorInvalidDevice;
    auto [state, lock] = fake::LockState();
    fake::ChooseDevice(state, device);
    return cudaSuccess;
  });
}

cudaError_t cudaGetDevice(int* device) {
  return fake::Query(__func__, [&] {
    if (device == nullptr) return cudaErrorInvalidValue;
    *device = fake::CurrentDevice();
    return cudaSuccess;
  });
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp* prop, int device) {
  return fake::Query(__func__, [&] { return fake::Properties(prop, device); });
}

cudaError_t cudaDeviceGetAttribute(int* value, enum cudaDeviceAttr attr, int device) {
  return fake::Query(__func__, [&] {
    if (value == nullptr) return cudaErrorInvalidValue;
    if (!fake::IsDevice(device)) return cudaErrorInvalidDevice;
    *value = fake::Attribute(attr, device);
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetPCIBusId(char* pciBusId, int len, int device) {
  return fake::Query(__func__, [&] {
    constexpr int kLongest = 13;
    if (pciBusId == nullptr || len < kLongest) return cudaErrorInvalidValue;
    if (!fake::IsDevice(device)) return cudaErrorInvalidDevice;
    std::snprintf(pciBusId, static_cast<size_t>(len), "0000:%02X:00.0", fake::BusOf(device));
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
  return fake::Query(__func__,
                     [&] { return fake::CanAccessPeer(canAccessPeer, device, peerDevice); });
}

cudaError_t cudaDeviceEnablePeerAccess(int peerDevice, unsigned int flags) {
  return fake::Call(__func__, [&] { return fake::EnablePeer(peerDevice, flags); });
}

cudaError_t cudaDriverGetVersion(int* driverVersion) {
  return fake::Version(__func__, driverVersion, sluice::FakeCudaConfiguration().driver_version);
}

cudaError_t cudaRuntimeGetVersion(int* runtimeVersion) {
  return fake::Version(__func__, runtimeVersion, CUDART_VERSION);
}

}  // extern "C"
