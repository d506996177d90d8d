// Groups of sends and receives through NCCL, in the order of the device's stream.
#ifndef SLUICE_SRC_TRANSPORT_NCCL_NCCL_TRANSPORT_H_
#define SLUICE_SRC_TRANSPORT_NCCL_NCCL_TRANSPORT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "device/device.h"
#include "sluice/transport.h"
#include "transport/nccl/nccl_communicator.h"

namespace sluice {

// Device memory that NCCL can register, of the GPU of `device`, which a CUDA accelerator has
// opened. NCCL takes the registration of other memory, and does nothing with it: since 2.24 it
// registers none that came from cudaMalloc.
absl::StatusOr<DeviceMemory> AllocateNcclMemory(Device* device, size_t bytes);

// One Start is one group. Operations stand in a ring in the order of their starts:
//
//   handed out | launched: their events may be taken | in the group that NCCL launches | waiting
//
// NCCL launches one group at a time; until its kernel is in the stream, those after it wait here.
class NcclTransport final : public Transport {
 public:
  NcclTransport(std::unique_ptr<NcclCommunicator> comm, bool register_staging)
      : Transport({.name = "nccl",
                   .in_stream_order = true,
                   .in_groups = true,
                   .takes_host_memory = false,
                   .takes_device_memory = true,
                   .takes_rows = false,
                   .takes_own_rank = true,
                   .staged_only = register_staging,
                   .allocate_staging = register_staging ? AllocateNcclMemory : nullptr}),
        comm_(std::move(comm)) {}
  // Aborts if a group has not been launched yet; otherwise as the communicator's.
  ~NcclTransport() override;

  absl::Status Reserve(int capacity) override;
  absl::Status UseStaging(absl::Span<std::byte> staging) override;
  absl::Status Start(absl::Span<const TransportOp> ops) override;
  absl::StatusOr<int> Poll(absl::Span<TransportEvent> events) override;
  void Withdraw() override;
  // An abort that has not come back counts, too: memory may be in use until then.
  int outstanding() const override { return in_ring() + (comm_->aborting() ? 1 : 0); }

 private:
  absl::Status Advance();
  absl::Status LaunchNext();
  // Gives `status` back with what was under way. The communicator is good for nothing any more, but
  // not aborted: that may take long, and others are to hear of `status` before (Withdraw).
  absl::Status Fail(const absl::Status& status);
  int in_ring() const { return static_cast<int>(started_ - handed_out_); }
  TransportOp& OpAt(uint64_t n) { return ops_[static_cast<size_t>(n % ops_.size())]; }
  uint32_t& GroupAt(uint64_t n) { return groups_[static_cast<size_t>(n % groups_.size())]; }

  const std::unique_ptr<NcclCommunicator> comm_;
  std::vector<TransportOp> ops_;
  // Operations, counted since the beginning; each at most the next.
  uint64_t handed_out_ = 0;
  uint64_t launched_ = 0;
  uint64_t launched_number_ = 0;  // of the group of the last of these
  uint64_t in_launch_ = 0;
  uint64_t started_ = 0;
  // The sizes of the groups that wait.
  std::vector<uint32_t> groups_;
  uint64_t first_group_ = 0;
  uint64_t last_group_ = 0;
  // Operations from this one on were withdrawn.
  uint64_t withdrawn_from_ = UINT64_MAX;
  uint32_t polls_ = 0;
  absl::Status failure_;
};

}  // namespace sluice

#endif  // SLUICE_SRC_TRANSPORT_NCCL_NCCL_TRANSPORT_H_
