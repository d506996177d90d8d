// What a program's ranks use of GPUs, as far as that is built in.
#ifndef SLUICE_BENCH_GPU_GPU_H_
#define SLUICE_BENCH_GPU_GPU_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "sluice/accelerator.h"

namespace sluice::bench {

// As flags say it: which memory, and what carries it.
struct GpuOptions {
  std::string src_device;  // cpu or cuda; empty: as `device`
  std::string dst_device;
  std::string transport = "mpi";  // or direct, nccl, cuda_ipc
  int ordinal = -1;               // -1: by the rank's place on its host
  int max_channels_per_peer = 0;  // of NCCL; 0: as many as it likes
  int min_ctas = 0;
  int max_ctas = 0;
  bool register_staging = false;

  // As typed: of the sides that do not say it themselves, and what to choose otherwise.
  std::string device = "cpu";
  std::string transport_text;

  bool record_spans = false;  // when the device is busy, for a trace

  bool uses_device() const { return src_device == "cuda" || dst_device == "cuda"; }
};

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
