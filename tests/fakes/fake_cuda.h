// What tests do with the fake CUDA runtime beside CUDA's own calls. They set it up, make calls
// fail, run host functions as kernels, count calls, and ask what was done wrong.
//
// The fake is real where mistakes hide: streams run on threads of their own, device memory cannot
// be touched by the host, and every pointer and handle is checked. What a GPU would forgive by luck
// is reported by FakeCudaMisuse().
//
// Environment, for programs that cannot call FakeCudaConfigure: FAKE_CUDA_DEVICES, CUDA's own
// CUDA_VISIBLE_DEVICES (numbers),
// FAKE_CUDA_MEMORY_MIB, FAKE_CUDA_DELAY_US, FAKE_CUDA_SEED, FAKE_CUDA_DRIVER (a version),
// FAKE_CUDA_SAME_PROCESS_IPC, FAKE_CUDA_FREE_WHILE_OPEN (0 or 1).
#ifndef SLUICE_TESTS_FAKES_FAKE_CUDA_H_
#define SLUICE_TESTS_FAKES_FAKE_CUDA_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cuda_runtime_api.h"

namespace sluice {

struct FakeCudaConfig {
  int devices = 1;  // none: cudaErrorNoDevice from every call
  // Which of these this process sees, by the numbers that all processes know them by, in the order
  // of its own numbers; empty: all.
  std::vector<int> visible = {};
  size_t memory_bytes = size_t{8} << 30;  // of each device
  int driver_version = 13000;  // 0: no driver; below 13000: too old. cudaErrorInsufficientDriver.
  int compute_capability = 90;
  int numa_node = -1;             // near which the devices are; -1: the system does not say
  bool peer_access = true;        // whether devices can access each other's memory
  bool same_process_ipc = false;  // handles may be opened where they were made: ranks as threads
  // Memory may be freed that others have open, and stays, and counts as allocated, until they close
  // it: as drivers do it, though CUDA does not promise that.
  bool free_while_open = false;
  // Memory gets addresses of what was freed, as drivers do it. Use of freed memory is not seen
  // then.
  bool reuse_addresses = false;
  // Allocations of up to 1 MiB share blocks of 2 MiB, of which processes open the whole. By default
  // a handle is of an allocation, and gives where that is in the block. Or it is of the block, and
  // gives that: then allocations of a block have the same handle.
  bool handles_open_blocks = false;
  bool ranges_are_blocks = false;  // what cuMemGetAddressRange says of such an allocation
  // Events of this process, with what it has open of others; beyond: cudaErrorMemoryAllocation.
  size_t events_max = 20000;
  int delay_us = 0;  // up to so long, at random, before each operation of a stream
  uint64_t seed = 1;
};

// The configuration of this process from now on; until then, the defaults with the environment.
// Nothing of the runtime may be in use.
void FakeCudaConfigure(const FakeCudaConfig& config);
FakeCudaConfig FakeCudaConfiguration();

// Memory that a kernel uses, as the device sees it.
struct FakeCudaRange {
  const void* pointer;
  size_t bytes;
};

// Launches `kernel` on the stream, as cudaLaunchKernel does: later, on a thread of the stream's.
// The ranges it uses are checked now, and must not be freed before it is known to be done.
cudaError_t FakeCudaEnqueue(cudaStream_t stream, std::function<void()> kernel,
                            const std::vector<FakeCudaRange>& uses = {});

// The same of a kernel with a name, which should have been loaded on the current device. Its first
// launch would load it otherwise, and wait for all that the device does: misuse if it does
// anything.
cudaError_t FakeCudaLaunch(const char* kernel, cudaStream_t stream, std::function<void()> body,
                           const std::vector<FakeCudaRange>& uses);
// As cudaFuncGetAttributes of that kernel. cudaErrorNoKernelImageForDevice on devices of less than
// sm_90.
cudaError_t FakeCudaLoad(const char* kernel);

// While one lives, cudaMalloc gives the calling thread memory as of a pool, of cudaMallocAsync or
// of torch's expandable segments: no other process can open it.
class FakeCudaPool {
 public:
  FakeCudaPool();
  ~FakeCudaPool();
  FakeCudaPool(const FakeCudaPool&) = delete;
  FakeCudaPool& operator=(const FakeCudaPool&) = delete;
};

// Where the bytes of device memory (or of pinned memory) lie for the host. The whole range must lie
// in one live allocation; otherwise it is misuse, and nullptr.
void* FakeCudaHostPointer(const void* pointer, size_t bytes);

// The nth call from now on (1: the next), or the nth of one function, fails with the error. It does
// nothing then; but calls that give something back or wait (cudaFree, cudaStreamSynchronize) do
// that too. Kernel launches are calls named cudaLaunchKernel. With `device`, only calls of threads
// whose device it is count. Functions of the driver (cuCtxPushCurrent) count by name only.
void FakeCudaFailAt(int nth_call, cudaError_t error);
void FakeCudaFailAt(std::string_view function, int nth_call, cudaError_t error, int device = -1);

// The nth operation (copy, set, kernel) to be enqueued from now on fails when its turn comes. From
// then on the device's state is this error, as after a fault on the GPU. With `device`, only that
// device's operations count.
void FakeCudaFailOperation(int nth_operation, cudaError_t error, int device = -1);

// From now on nothing is made to fail.
void FakeCudaFailNoMore();

// How many of the failures above have come to pass since the last FakeCudaCheckClean().
int FakeCudaFailures();

// Calls since the last FakeCudaCheckClean(): of one function, of all, and those in which the host
// had to wait for a device (synchronising, freeing, copying from or to pageable memory).
int64_t FakeCudaCalls(std::string_view function);
int64_t FakeCudaAllCalls();
int64_t FakeCudaHostWaits();

// Whether the device has a primary context: one was made since the last FakeCudaCheckClean(), or
// has become current since. A real one takes hundreds of MiB of the device.
bool FakeCudaHasContext(int device);
// The device whose context this thread has; -1: none.
int FakeCudaCurrentContext();
// How many kernels have run to their end, on all devices, since the program began.
int64_t FakeCudaKernelsDone();

// What was done wrong since this was last called.
std::vector<std::string> FakeCudaMisuse();

// The same, and what is left: memory, streams, events, mappings, and work that nobody saw to be
// done. Then forgets all that, failures to come, counts and the devices' errors, so that the next
// test starts anew. Call it when no rank is running.
std::vector<std::string> FakeCudaCheckClean();

}  // namespace sluice

#endif  // SLUICE_TESTS_FAKES_FAKE_CUDA_H_
