// Groups of sends and receives through NCCL, in the order of the device's stream.
#include <nccl.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "device/cuda/cuda_current.h"
#include "device/cuda/cuda_queue.h"
#include "device/device.h"
#include "sluice/nccl.h"
#include "sluice/transport.h"
#include "tensor/check.h"
#include "tensor/error_text.h"
#include "transport/nccl/nccl_communicator.h"
#include "transport/nccl/nccl_error.h"
#include "transport/op_check.h"

namespace sluice {
namespace {

// Polls between two looks at whether kernels under way have failed.
constexpr uint32_t kPollsPerCheck = 32;

// Errors are not for whoever frees.
void FreeNcclMemory(std::byte* data, size_t, int ordinal) {
  const CurrentCudaDevice current(ordinal);
  static_cast<void>(ncclMemFree(data));
}

// Device memory that NCCL can register, of the GPU of `device`, which a CUDA accelerator has
// opened. NCCL takes the registration of other memory, and does nothing with it: since 2.24 it
// registers none that came from cudaMalloc.
absl::StatusOr<DeviceMemory> AllocateNcclMemory(Device* device, size_t bytes) {
  if (bytes == 0) return DeviceMemory();
  SLUICE_ASSIGN_OR_RETURN(const CudaQueue queue, QueueOf(device, "nccl"));
  const CurrentCudaDevice current(queue.ordinal);  // where NCCL allocates
  if (!current.status().ok()) return current.status();
  void* data = nullptr;
  const ncclResult_t result = ncclMemAlloc(&data, bytes);
  if (result != ncclSuccess) {
    const absl::Status status =
        NcclError(result, "ncclMemAlloc", nullptr, ErrorText("GPU ", queue.ordinal));
    return MakeError(absl::StatusCode::kResourceExhausted, "cannot allocate ", bytes,
                     " bytes: ", status);
  }
  return DeviceMemory(static_cast<std::byte*>(data), bytes, FreeNcclMemory, queue.ordinal);
}

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

NcclTransport::~NcclTransport() {
  if (launched_ != started_ || !failure_.ok()) comm_->Abort();
}

absl::Status NcclTransport::Reserve(int capacity) {
  SLUICE_CHECK(outstanding() == 0, "Reserve with operations outstanding");
  if (static_cast<size_t>(capacity) <= ops_.size()) return absl::OkStatus();
  ops_.resize(static_cast<size_t>(capacity));
  groups_.resize(static_cast<size_t>(capacity));
  return absl::OkStatus();
}

absl::Status NcclTransport::UseStaging(absl::Span<std::byte> staging) {
  SLUICE_CHECK(outstanding() == 0, "UseStaging with operations outstanding");
  if (!failure_.ok()) return failure_;
  if (!traits().staged_only || comm_->aborted()) return absl::OkStatus();
  const absl::Status status = comm_->Register(staging);
  return status.ok() ? status : Fail(status);
}

absl::Status NcclTransport::Start(absl::Span<const TransportOp> ops) {
  CheckOps(ops, comm_->rank(), comm_->size(), traits());
  const int capacity = static_cast<int>(ops_.size());
  SLUICE_RETURN_IF_ERROR(CheckCapacity(ops.size(), in_ring(), capacity));
  if (!failure_.ok()) return failure_;
  if (ops.empty()) return absl::OkStatus();
  for (const TransportOp& op : ops) OpAt(started_++) = op;
  if (comm_->aborted()) {
    launched_ = in_launch_ = started_;
    return absl::OkStatus();
  }
  GroupAt(last_group_++) = static_cast<uint32_t>(ops.size());
  return Advance();
}

absl::StatusOr<int> NcclTransport::Poll(absl::Span<TransportEvent> events) {
  if (!failure_.ok()) return failure_;
  if (events.empty()) polls_ = 0;
  SLUICE_RETURN_IF_ERROR(Advance());
  if (comm_->aborting()) return 0;  // whose memory is in use until then
  if (launched_ != handed_out_) comm_->HandedOut(launched_number_);
  const int count = static_cast<int>(std::min<uint64_t>(launched_ - handed_out_, events.size()));
  for (int i = 0; i < count; ++i) {
    const TransportOp& op = OpAt(handed_out_);
    TransportEvent& event = events[static_cast<size_t>(i)];
    event.cookie = op.cookie;
    event.status =
        handed_out_ < withdrawn_from_ ? absl::OkStatus() : WithdrawnError(op, comm_->rank());
    ++handed_out_;
  }
  return count;
}

absl::Status NcclTransport::Advance() {
  if (comm_->aborted()) return absl::OkStatus();
  for (;;) {
    const bool launching = in_launch_ != launched_;
    if (launching || polls_++ % kPollsPerCheck == 0) {
      const absl::StatusOr<bool> ready = comm_->Ready();
      if (!ready.ok()) return Fail(ready.status());
      if (launching && !*ready) return absl::OkStatus();
    }
    launched_ = in_launch_;
    launched_number_ = comm_->last_launched();
    if (first_group_ == last_group_) return absl::OkStatus();
    SLUICE_RETURN_IF_ERROR(LaunchNext());
  }
}

absl::Status NcclTransport::LaunchNext() {
  const uint64_t count = GroupAt(first_group_++);
  const size_t at = static_cast<size_t>(launched_ % ops_.size());
  const size_t before_end = std::min(static_cast<size_t>(count), ops_.size() - at);
  const absl::Span<const TransportOp> ring = ops_;
  in_launch_ += count;
  const absl::Status status = comm_->Launch(
      ring.subspan(at, before_end), ring.subspan(0, static_cast<size_t>(count) - before_end));
  return status.ok() ? status : Fail(status);
}

absl::Status NcclTransport::Fail(const absl::Status& status) {
  const uint64_t waiting = started_ - launched_;
  const ErrorText first =
      waiting == 0 ? ErrorText()
                   : ErrorText(", the first a ", DescribeOp(OpAt(launched_), comm_->rank()));
  failure_ = MakeError(status.code(), status, "; the communicator is given up, with ", waiting,
                       " operations that were not under way", first);
  handed_out_ = launched_ = in_launch_ = started_;
  first_group_ = last_group_;
  return failure_;
}

void NcclTransport::Withdraw() {
  if (comm_->aborted()) return;
  comm_->Abort();
  withdrawn_from_ = launched_;
  launched_ = in_launch_ = started_;
  first_group_ = last_group_;
}

constexpr char kChannelsVariable[] = "NCCL_MAX_P2P_NCHANNELS";
// NCCL's own maximum between GPUs of one node.
constexpr int kChannelsMax = 32;
constexpr int kCtasMax = 64;  // MAXCHANNELS of NCCL

absl::Status CheckOption(absl::string_view name, const absl::optional<int>& value, int max) {
  if (!value || (*value >= 1 && *value <= max)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("NcclOptions: ", name, " is ", *value, ", not 1 to ", max));
}

absl::Status CheckOptions(const NcclOptions& options) {
  absl::Status status =
      CheckOption("max_channels_per_peer", options.max_channels_per_peer, kCtasMax);
  status.Update(CheckOption("min_ctas", options.min_ctas, kCtasMax));
  status.Update(CheckOption("max_ctas", options.max_ctas, kCtasMax));
  if (status.ok() && options.min_ctas && options.max_ctas &&
      *options.min_ctas > *options.max_ctas) {
    status = absl::InvalidArgumentError(absl::StrCat("NcclOptions: min_ctas is ", *options.min_ctas,
                                                     ", above max_ctas, ", *options.max_ctas));
  }
  if (status.ok() && options.timeout <= absl::ZeroDuration()) {
    status = absl::InvalidArgumentError("NcclOptions: timeout is not positive");
  }
  return status;
}

class NcclMaker final : public TransportMaker {
 public:
  NcclMaker(std::shared_ptr<Accelerator> accelerator, const NcclOptions& options)
      : accelerator_(std::move(accelerator)), options_(options) {}

  std::string name() const override { return "nccl"; }

  absl::StatusOr<std::unique_ptr<Transport>> Open(Fabric* fabric, Device* device) override {
    SLUICE_ASSIGN_OR_RETURN(auto comm,
                            NcclCommunicator::Connect(fabric, QueueOf(device, name()), options_));
    return std::make_unique<NcclTransport>(std::move(comm), options_.register_staging);
  }

 private:
  const std::shared_ptr<Accelerator> accelerator_;  // outlives the transports
  const NcclOptions options_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<TransportMaker>> MakeNcclTransport(
    std::shared_ptr<Accelerator> accelerator, const NcclOptions& options) {
  SLUICE_RETURN_IF_ERROR(CheckOptions(options));
  if (options.max_channels_per_peer) {
    setenv(kChannelsVariable, absl::StrCat(*options.max_channels_per_peer).c_str(), 0);
  }
  return std::make_shared<NcclMaker>(std::move(accelerator), options);
}

int64_t NcclBytesEstimate(int peers, int channels) {
  constexpr int64_t kPerDirection = int64_t{10} << 20;
  return 2 * kPerDirection * peers * (channels > 0 ? channels : kChannelsMax);
}

}  // namespace sluice
