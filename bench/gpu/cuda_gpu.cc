// The one file of the benchmarks that knows which vendor libraries are built in.
#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gpu/gpu.h"

#if SLUICE_WITH_CUDA
#include "sluice/cuda.h"
#endif
#if SLUICE_WITH_NCCL
#include "sluice/nccl.h"
#include "sluice/status.h"
#endif

namespace sluice::bench {
namespace {

absl::Status NotBuiltIn(absl::string_view what) {
  return absl::FailedPreconditionError(
      absl::StrCat(what, " is not built in: built with ", GpuBuiltWith()));
}

#if SLUICE_WITH_NCCL
NcclOptions NcclOptionsOf(const GpuOptions& options) {
  NcclOptions nccl;
  if (options.max_channels_per_peer > 0) nccl.max_channels_per_peer = options.max_channels_per_peer;
  if (options.min_ctas > 0) nccl.min_ctas = options.min_ctas;
  if (options.max_ctas > 0) nccl.max_ctas = options.max_ctas;
  nccl.register_staging = options.register_staging;
  return nccl;
}
#endif

#if SLUICE_WITH_CUDA
absl::StatusOr<std::shared_ptr<TransportMaker>> MakeTransport(
    const GpuOptions& options, const std::shared_ptr<Accelerator>& accelerator) {
  if (options.transport == "mpi") return std::shared_ptr<TransportMaker>();
#if SLUICE_WITH_NCCL
  if (options.transport == "nccl") return MakeNcclTransport(accelerator, NcclOptionsOf(options));
#endif
  if (options.transport == "cuda_ipc") return MakeCudaIpcTransport(accelerator);
  return NotBuiltIn(options.transport);
}
#endif

}  // namespace

absl::StatusOr<Gpu> OpenGpu(const GpuOptions& options, [[maybe_unused]] int local_rank) {
  Gpu gpu;
  const bool on_host = options.transport == "mpi" || options.transport == "direct";
  if (!options.uses_device() && on_host) return gpu;
#if SLUICE_WITH_CUDA
  CudaOptions cuda;
  cuda.ordinal = options.ordinal;
  cuda.record_spans = options.record_spans;
  if (options.ordinal < 0) {
    int devices = 0;  // without any, the accelerator says what is wrong
    if (cudaGetDeviceCount(&devices) != cudaSuccess) devices = 0;
    cuda.ordinal = local_rank % std::max(1, devices);
  }
  SLUICE_ASSIGN_OR_RETURN(gpu.accelerator, MakeCudaAccelerator(cuda));
  SLUICE_ASSIGN_OR_RETURN(gpu.transport, MakeTransport(options, gpu.accelerator));
  return gpu;
#else
  return NotBuiltIn("CUDA");
#endif
}

GpuSight LookForGpus() {
  GpuSight sight;
#if SLUICE_WITH_CUDA
  sight.has_cuda = true;
  // Without a driver it fails, and there are none.
  if (cudaGetDeviceCount(&sight.visible) != cudaSuccess) sight.visible = 0;
#endif
#if SLUICE_WITH_NCCL
  sight.has_nccl = true;
#endif
  return sight;
}

int64_t NcclBytes([[maybe_unused]] const GpuOptions& options, [[maybe_unused]] int64_t peers) {
#if SLUICE_WITH_NCCL
  if (options.transport == "nccl") {
    return NcclBytesEstimate(static_cast<int>(peers), options.max_channels_per_peer);
  }
#endif
  return 0;
}

std::string GpuBuiltWith() { return SLUICE_ACCELERATORS; }

}  // namespace sluice::bench
