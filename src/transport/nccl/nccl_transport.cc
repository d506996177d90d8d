// Groups through NCCL.
#include "transport/nccl/nccl_transport.h"

#include <nccl.h>

#include <algorithm>

#include "device/cuda/cuda_current.h"
#include "device/cuda/cuda_queue.h"
#include "tensor/check.h"
#include "tensor/error_text.h"
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

}  // namespace

absl::StatusOr<DeviceMemory> AllocateNcclMemory(Device* device, size_t bytes) {
  if (bytes == 0) return DeviceMemory();
  const absl::StatusOr<CudaQueue> queue = QueueOf(device, "nccl");
  if (!queue.ok()) return queue.status();
  const CurrentCudaDevice current(queue->ordinal);  // where NCCL allocates
  if (!current.status().ok()) return current.status();
  void* data = nullptr;
  const ncclResult_t result = ncclMemAlloc(&data, bytes);
  if (result != ncclSuccess) {
    const absl::Status status =
        NcclError(result, "ncclMemAlloc", nullptr, ErrorText("GPU ", queue->ordinal));
    return MakeError(absl::StatusCode::kResourceExhausted, "cannot allocate ", bytes,
                     " bytes: ", status);
  }
  return DeviceMemory(static_cast<std::byte*>(data), bytes, FreeNcclMemory, queue->ordinal);
}

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
  if (absl::Status status = CheckCapacity(ops.size(), in_ring(), capacity); !status.ok()) {
    return status;
  }
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
  if (absl::Status status = Advance(); !status.ok()) return status;
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
    if (absl::Status status = LaunchNext(); !status.ok()) return status;
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

}  // namespace sluice
