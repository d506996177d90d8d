// Batches in flight: which have been issued, and which are complete.
#include "device/cuda/cuda_device.h"

#include <cuda_runtime_api.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "device/cuda/cuda_current.h"
#include "device/cuda/cuda_event.h"
#include "device/cuda/cuda_given_up.h"
#include "device/cuda/cuda_lanes.h"
#include "device/cuda/cuda_load.h"
#include "device/cuda/cuda_memory.h"
#include "device/device.h"
#include "device/owned_batch.h"
#include "tensor/error_text.h"

namespace sluice {
namespace {

bool IsOfNothing(const CopyBatch& batch) {
  return batch.copies.empty() && batch.small_copies.empty() && batch.reductions.empty() &&
         batch.normalizations.empty() && batch.after == nullptr && batch.then == nullptr;
}

class CudaDeviceImpl final : public CudaDevice {
 public:
  CudaDeviceImpl(const CudaDeviceOptions& options, std::unique_ptr<CudaLanes> lanes)
      : CudaDevice(options.ordinal, lanes->transport_stream()),
        farewell_(options.farewell),
        lanes_(std::move(lanes)) {}
  ~CudaDeviceImpl() override;

  // The device is current.
  absl::Status Prepare();

  absl::StatusOr<DeviceMemory> AllocateStaging(size_t bytes) override;
  absl::StatusOr<DeviceMemory> AllocateBuffer(size_t bytes) override;
  absl::StatusOr<std::unique_ptr<Fence>> MakeFence() override { return MakeCudaFence(ordinal()); }
  absl::Status Start(const CopyBatch& batch) override;
  absl::StatusOr<int> Poll(absl::Span<uint64_t> cookies) override;
  std::vector<DeviceSpan> TakeSpans() override;
  absl::StatusOr<uint64_t> HoldBackTransport() override;
  void TransportHandedOut(uint64_t number) override { lanes_->TransportHandedOut(number); }
  cudaStream_t fill_stream() const override { return lanes_->fill_stream(); }
  cudaStream_t drain_stream() const override { return lanes_->drain_stream(); }

 private:
  enum class State { kFree, kQueued, kOnStream, kComplete };
  struct Record {
    State state = State::kFree;
    OwnedBatch batch;
    CudaBatchEnd end;
  };

  void Issue();
  absl::StatusOr<bool> IssueOne(Record* record);
  absl::Status LookForComplete();
  int GiveOut(absl::Span<uint64_t> cookies);
  void Fail(const absl::Status& status);

  const std::chrono::milliseconds farewell_;
  std::unique_ptr<CudaLanes> lanes_;
  std::array<Record, kMaxOutstanding> records_;
  // Records that are not free, in the order in which they were started.
  std::array<Record*, kMaxOutstanding> started_{};
  size_t started_count_ = 0;
  size_t queued_count_ = 0;  // those of them that are not issued
  absl::Status failure_;
  bool failure_told_ = false;
};

CudaDeviceImpl::~CudaDeviceImpl() {
  const CurrentCudaDevice current(ordinal());
  const auto end = std::chrono::steady_clock::now() + farewell_;
  // Batches that wait for a stream go on when the stream is done.
  bool idle = false;
  for (Issue(); !(idle = lanes_->IsIdle()) || (queued_count_ > 0 && failure_.ok()); Issue()) {
    if (std::chrono::steady_clock::now() >= end) break;
    if (!idle) std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  if (idle) {
    lanes_.reset();
  } else {
    GiveUpCudaLanes(ordinal(), std::move(lanes_));
  }
  for (Record& record : records_) record.end = CudaBatchEnd();
  (void)cudaGetLastError();
}

absl::Status CudaDeviceImpl::Prepare() {
  SLUICE_RETURN_IF_ERROR(LoadCudaKernels(ordinal()));
  for (Record& record : records_) {
    SLUICE_RETURN_IF_ERROR(record.end.Prepare());
  }
  return absl::OkStatus();
}

absl::StatusOr<DeviceMemory> CudaDeviceImpl::AllocateStaging(size_t bytes) {
  const CurrentCudaDevice current(ordinal());
  if (!current.status().ok()) return current.status();
  return AllocatePinned(ordinal(), bytes, "staging memory");
}

absl::StatusOr<DeviceMemory> CudaDeviceImpl::AllocateBuffer(size_t bytes) {
  const CurrentCudaDevice current(ordinal());
  if (!current.status().ok()) return current.status();
  return AllocateOnGpu(ordinal(), bytes, "buffer memory");
}

absl::Status CudaDeviceImpl::Start(const CopyBatch& batch) {
  // A failed device can still say when it touches no memory any more.
  if (!failure_.ok() && !IsOfNothing(batch)) return failure_;
  if (started_count_ == records_.size()) {
    return absl::ResourceExhaustedError(
        absl::StrCat(kMaxOutstanding, " copy batches are waiting to be polled"));
  }
  size_t free = 0;
  while (records_[free].state != State::kFree) ++free;
  Record& record = records_[free];
  record.state = State::kQueued;
  record.batch.Assign(batch);
  started_[started_count_++] = &record;
  ++queued_count_;
  const CurrentCudaDevice current(ordinal());
  if (current.status().ok()) {
    Issue();
  } else {
    Fail(current.status());
  }
  return absl::OkStatus();
}

absl::StatusOr<int> CudaDeviceImpl::Poll(absl::Span<uint64_t> cookies) {
  if (started_count_ == 0 && failure_.ok()) return 0;
  const CurrentCudaDevice current(ordinal());
  if (!current.status().ok()) Fail(current.status());
  Issue();
  if (failure_.ok()) {
    if (const absl::Status status = LookForComplete(); !status.ok()) Fail(status);
  }
  if (failure_.ok()) return GiveOut(cookies);
  if (!std::exchange(failure_told_, true)) return failure_;
  // Work that came before may still be under way, and a transport may add some. An error says that
  // there is none.
  if (started_count_ == 0 || !lanes_->IsIdle()) return 0;
  for (size_t i = 0; i < started_count_; ++i) started_[i]->state = State::kComplete;
  queued_count_ = 0;
  return GiveOut(cookies);
}

// As many as can be, in the order of their lanes.
void CudaDeviceImpl::Issue() {
  std::array<bool, 2> waits{};  // by lane
  for (size_t i = 0; i < started_count_ && queued_count_ > 0 && failure_.ok(); ++i) {
    Record* const record = started_[i];
    if (record->state != State::kQueued) continue;
    const bool keeps_order = CudaLanes::KeepsOrder(record->batch);
    bool& lane_waits = waits[static_cast<size_t>(CudaLanes::LaneOf(record->batch))];
    if (keeps_order ? waits[0] || waits[1] : lane_waits) {
      if (keeps_order) return;
      continue;
    }
    const absl::StatusOr<bool> issued = IssueOne(record);
    if (!issued.ok()) return Fail(issued.status());
    if (*issued) {
      --queued_count_;
    } else if (keeps_order) {
      return;
    } else {
      lane_waits = true;
    }
  }
}

absl::StatusOr<bool> CudaDeviceImpl::IssueOne(Record* record) {
  const OwnedBatch& batch = record->batch;
  absl::StatusOr<bool> issued = lanes_->Issue(batch);
  if (!issued.ok() || !*issued) return issued;
  if (batch.in_stream_order() || !lanes_->IsOnStream(batch)) {
    record->state = State::kComplete;
    return true;
  }
  SLUICE_RETURN_IF_ERROR(lanes_->RecordEnd(batch, &record->end));
  record->state = State::kOnStream;
  return true;
}

absl::Status CudaDeviceImpl::LookForComplete() {
  std::array<bool, 2> waits{};  // by lane
  for (size_t i = 0; i < started_count_; ++i) {
    Record* const record = started_[i];
    if (record->state != State::kOnStream) continue;
    // A batch of nothing waits for both lanes. Later batches of a lane wait for it, too.
    const bool of_nothing = record->batch.empty() && CudaLanes::KeepsOrder(record->batch);
    bool& lane_waits = waits[static_cast<size_t>(CudaLanes::LaneOf(record->batch))];
    if (of_nothing ? waits[0] || waits[1] : lane_waits) continue;
    SLUICE_ASSIGN_OR_RETURN(const bool passed, record->end.Passed());
    if (passed) {
      record->state = State::kComplete;
    } else if (of_nothing) {
      return absl::OkStatus();
    } else {
      lane_waits = true;
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> CudaDeviceImpl::HoldBackTransport() {
  const CurrentCudaDevice current(ordinal());
  if (!current.status().ok()) return current.status();
  return lanes_->HoldBackTransport();
}

int CudaDeviceImpl::GiveOut(absl::Span<uint64_t> cookies) {
  size_t given = 0;
  size_t kept = 0;
  for (size_t i = 0; i < started_count_; ++i) {
    Record* const record = started_[i];
    if (record->state == State::kComplete && given < cookies.size()) {
      cookies[given++] = record->batch.cookie();
      record->state = State::kFree;
    } else {
      started_[kept++] = record;
    }
  }
  started_count_ = kept;
  return static_cast<int>(given);
}

void CudaDeviceImpl::Fail(const absl::Status& status) {
  if (failure_.ok()) failure_ = status;
}

std::vector<DeviceSpan> CudaDeviceImpl::TakeSpans() {
  std::vector<DeviceSpan> taken;
  const CurrentCudaDevice current(ordinal());
  const absl::Status status = current.status().ok() ? lanes_->TakeSpans(&taken) : current.status();
  if (!status.ok()) Fail(status);
  return taken;
}

}  // namespace

absl::StatusOr<std::unique_ptr<CudaDevice>> CudaDevice::Create(const CudaDeviceOptions& options) {
  const CurrentCudaDevice current(options.ordinal);
  if (!current.status().ok()) return current.status();
  FreeGivenUp(options.ordinal);
  SLUICE_ASSIGN_OR_RETURN(
      std::unique_ptr<CudaLanes> lanes,
      CudaLanes::Create(options.ordinal, options.bounce_bytes, options.record_spans));
  auto device = std::make_unique<CudaDeviceImpl>(options, std::move(lanes));
  SLUICE_RETURN_IF_ERROR(device->Prepare());
  return device;
}

}  // namespace sluice
