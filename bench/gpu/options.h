// Flags of programs that can work on a GPU: which memory, and what carries it.
#ifndef SLUICE_BENCH_GPU_OPTIONS_H_
#define SLUICE_BENCH_GPU_OPTIONS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace CLI {
class App;
}

namespace sluice::bench {

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

// For transfers between ranks.
void AddGpuFlags(CLI::App* app, GpuOptions* options);

// To be called after parsing. InvalidArgument names the flag.
absl::Status CheckGpuOptions(GpuOptions* options);

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_GPU_OPTIONS_H_
