// Keeps memory, streams and events of devices whose streams wait for work that may never end, as of
// a process that has died. They are freed once the GPU has got past that work.
#ifndef SLUICE_SRC_DEVICE_CUDA_CUDA_GIVEN_UP_H_
#define SLUICE_SRC_DEVICE_CUDA_CUDA_GIVEN_UP_H_

#include <cstddef>
#include <memory>

#include "device/cuda/cuda_lanes.h"
#include "device/device.h"

namespace sluice {

// Keeps lanes that have work. Destroying a stream does not wait, but freeing memory waits for all
// that its GPU does. Any thread; so are all calls here. GPU `ordinal` is current in all of them.
void GiveUpCudaLanes(int ordinal, std::unique_ptr<CudaLanes> lanes);

// True if `free` is to free the memory later, since lanes of this GPU that were given up have work.
bool KeptByGivenUpLanes(std::byte* data, size_t bytes, int ordinal, DeviceMemory::Deleter free);

// Frees what the GPU has got past.
void FreeGivenUp(int ordinal);

}  // namespace sluice

#endif  // SLUICE_SRC_DEVICE_CUDA_CUDA_GIVEN_UP_H_
