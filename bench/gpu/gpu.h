// What a program's ranks use of GPUs, as far as that is built in.
#ifndef SLUICE_BENCH_GPU_GPU_H_
#define SLUICE_BENCH_GPU_GPU_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "gpu/options.h"
#include "sluice/accelerator.h"

namespace sluice::bench {

struct Gpu {
  std::shared_ptr<Accelerator> accelerator;   // null: host memory alone
  std::shared_ptr<TransportMaker> transport;  // null: messages of MPI
};

// `local_rank`: this rank's place on its host. Uses a device only if the options do, or their
// transport. FailedPrecondition names what is not built in; errors of the device otherwise.
absl::StatusOr<Gpu> OpenGpu(const GpuOptions& options, int local_rank);

// What is built in, and how many devices this process sees. Uses no device.
struct GpuSight {
  bool has_cuda = false;
  bool has_nccl = false;
  int visible = 0;
};
GpuSight LookForGpus();

// What NCCL takes of a device's memory for messages with `peers` ranks; 0 without NCCL.
int64_t NcclBytes(const GpuOptions& options, int64_t peers);

// "CUDA 13.0 (sm_90, PTX), NCCL 2.28.9, CUDA IPC"; "no CUDA".
std::string GpuBuiltWith();

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_GPU_GPU_H_
