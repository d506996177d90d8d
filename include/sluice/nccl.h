// Buckets in device memory between GPUs through NCCL.
//
// NCCL connects ranks to one another when they first meet in a group, and keeps the memory.
#ifndef SLUICE_NCCL_H_
#define SLUICE_NCCL_H_

#include <cstdint>
#include <memory>

#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "sluice/accelerator.h"

namespace sluice {

// Equal on all ranks.
struct NcclOptions {
  // Channels that carry what two ranks exchange; each takes memory (NcclBytesEstimate). From
  // 1 to 64; not set: as NCCL decides. Sets NCCL_MAX_P2P_NCHANNELS, unless the environment has it.
  // NCCL reads that once in a process: before its first communicator is made.
  absl::optional<int> max_channels_per_peer = absl::nullopt;
  // Bounds of the thread blocks, and so of the SMs, that NCCL uses. From 1 to 64; not set: as NCCL
  // decides.
  absl::optional<int> min_ctas = absl::nullopt;
  absl::optional<int> max_ctas = absl::nullopt;
  // Whether the session's staging is memory of ncclMemAlloc, which NCCL registers. Between GPUs of
  // one node it is then reached without NCCL's own buffers. But every bucket goes through staging
  // at both ends, as NCCL demands that all memory is registered, or none. Without it, what lies in
  // one stretch goes straight from tensor to tensor.
  bool register_staging = false;
  // How long the ranks may take to come together, and each step of connecting them.
  absl::Duration timeout = absl::Seconds(60);
};

// For sessions with a device of `accelerator`, one rank per GPU. InvalidArgument names an option
// that cannot be.
absl::StatusOr<std::shared_ptr<TransportMaker>> MakeNcclTransport(
    std::shared_ptr<Accelerator> accelerator, const NcclOptions& options = {});

// Bytes of device memory that NCCL takes on a rank. The rank has exchanged with `peers` others,
// over `channels` channels each. 0 channels: the most that NCCL uses between GPUs of one node. An
// upper estimate: about 10 MiB per peer, channel and direction (allocations as listed in
// github.com/NVIDIA/nccl/issues/1685). Registered staging and network peers take less.
int64_t NcclBytesEstimate(int peers, int channels);

}  // namespace sluice

#endif  // SLUICE_NCCL_H_
