// Batches in flight: which have been issued, and which are complete.
#include "device/cuda_device.h"

#include <cuda_runtime_api.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "device/cuda_batch.h"
#include "device/cuda_current.h"
#include "device/cuda_error.h"
#include "device/cuda_event.h"
#include "device/cuda_issuer.h"
#include "device/cuda_memory.h"
#include "device/cuda_spans.h"
#include "device/device.h"
#include "sluice/accelerator.h"

namespace sluice {
namespace {

bool IsOfNothing(const CopyBatch& batch) {
  return batch.copies.empty() && batch.reductions.empty() && batch.normalizations.empty() &&
         batch.after == nullptr && batch.then == nullptr;
}

class CudaDeviceImpl final : public CudaDevice {
 public:
  CudaDeviceImpl(int ordinal, cudaStream_t stream) : CudaDevice(ordinal, stream) {}
  ~CudaDeviceImpl() override;

  // The device is current.
  absl::Status Prepare(const CudaDeviceOptions& options);

  absl::StatusOr<DeviceMemory> AllocateStaging(size_t bytes) override;
  absl::StatusOr<DeviceMemory> AllocateBuffer(size_t bytes) override;
  absl::StatusOr<std::unique_ptr<Fence>> MakeFence() override { return MakeCudaFence(ordinal()); }
  absl::Status Start(const CopyBatch& batch) override;
  absl::StatusOr<int> Poll(absl::Span<uint64_t> cookies) override;
  std::vector<DeviceSpan> TakeSpans() override;

 private:
  enum class State { kFree, kQueued, kOnStream, kComplete };
  struct Record {
    State state = State::kFree;
    OwnedBatch batch;
    UniqueCudaEvent done;
  };

  void Issue();
  absl::StatusOr<bool> IssueOne(Record* record);
  absl::Status LookForComplete();
  bool TouchesNothingMore();
  int GiveOut(absl::Span<uint64_t> cookies);
  void Fail(const absl::Status& status);

  std::unique_ptr<CudaIssuer> issuer_;
  std::unique_ptr<CudaSpans> spans_;
  std::array<Record, kMaxOutstanding> records_;
  // Those that are not free, in the order in which they were started.
  std::array<Record*, kMaxOutstanding> started_{};
  size_t started_count_ = 0;
  size_t issued_count_ = 0;  // the first so many of them
  bool begun_ = false;       // the one after these
  absl::Status failure_;
  bool failure_told_ = false;
  bool touches_nothing_ = false;
};

CudaDeviceImpl::~CudaDeviceImpl() {
  const CurrentCudaDevice current(ordinal());
  // What has to wait for the stream goes on when the stream is done.
  for (Issue(); issued_count_ < started_count_ && failure_.ok(); Issue()) {
    if (cudaStreamSynchronize(stream()) != cudaSuccess) break;
  }
  (void)cudaStreamSynchronize(stream());
  issuer_.reset();
  spans_.reset();
  for (Record& record : records_) record.done = UniqueCudaEvent();
  (void)cudaStreamDestroy(stream());
  (void)cudaGetLastError();
}

absl::Status CudaDeviceImpl::Prepare(const CudaDeviceOptions& options) {
  absl::StatusOr<std::unique_ptr<CudaIssuer>> issuer =
      CudaIssuer::Create(ordinal(), stream(), options.bounce_bytes);
  if (!issuer.ok()) return issuer.status();
  issuer_ = *std::move(issuer);
  for (Record& record : records_) {
    absl::StatusOr<UniqueCudaEvent> event = UniqueCudaEvent::Create();
    if (!event.ok()) return event.status();
    record.done = *std::move(event);
  }
  if (!options.record_spans) return absl::OkStatus();
  absl::StatusOr<std::unique_ptr<CudaSpans>> spans = CudaSpans::Create(stream());
  if (!spans.ok()) return spans.status();
  spans_ = *std::move(spans);
  return absl::OkStatus();
}

absl::StatusOr<DeviceMemory> CudaDeviceImpl::AllocateStaging(size_t bytes) {
  const CurrentCudaDevice current(ordinal());
  if (!current.status().ok()) return current.status();
  return AllocatePinned(bytes, "staging memory");
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
  if (!TouchesNothingMore()) return 0;
  for (size_t i = 0; i < started_count_; ++i) started_[i]->state = State::kComplete;
  issued_count_ = started_count_;
  return GiveOut(cookies);
}

// As many as can be, in their order.
void CudaDeviceImpl::Issue() {
  while (failure_.ok() && issued_count_ < started_count_) {
    const absl::StatusOr<bool> issued = IssueOne(started_[issued_count_]);
    if (!issued.ok()) return Fail(issued.status());
    if (!*issued) return;
    ++issued_count_;
  }
}

absl::StatusOr<bool> CudaDeviceImpl::IssueOne(Record* record) {
  const OwnedBatch& batch = record->batch;
  if (!begun_) {
    begun_ = true;
    if (absl::Status status = issuer_->Begin(batch); !status.ok()) return status;
    if (spans_ != nullptr) {
      if (absl::Status status = spans_->Begin(batch.cookie()); !status.ok()) return status;
    }
  }
  absl::StatusOr<bool> issued = issuer_->Continue();
  if (!issued.ok() || !*issued) return issued;
  begun_ = false;
  if (spans_ != nullptr) {
    if (absl::Status status = spans_->End(); !status.ok()) return status;
  }
  if (batch.then() != nullptr) {
    absl::Status status = batch.then()->Record(StreamHandle{stream()});
    if (!status.ok()) return status;
  }
  // One of nothing is there to learn when all before it is complete.
  if (batch.in_stream_order() || (!issuer_->used_stream() && !batch.empty())) {
    record->state = State::kComplete;
    return true;
  }
  if (absl::Status status = record->done.Record(stream()); !status.ok()) return status;
  record->state = State::kOnStream;
  return true;
}

absl::Status CudaDeviceImpl::LookForComplete() {
  for (size_t i = 0; i < issued_count_; ++i) {
    if (started_[i]->state != State::kOnStream) continue;
    const absl::StatusOr<bool> passed = started_[i]->done.Passed();
    if (!passed.ok()) return passed.status();
    if (!*passed) return absl::OkStatus();  // later ones have not, either
    started_[i]->state = State::kComplete;
  }
  return absl::OkStatus();
}

// After a failure: work that came before it may still be under way. An error says that none is.
bool CudaDeviceImpl::TouchesNothingMore() {
  if (touches_nothing_) return true;
  touches_nothing_ = cudaStreamQuery(stream()) != cudaErrorNotReady;
  (void)cudaGetLastError();
  return touches_nothing_;
}

int CudaDeviceImpl::GiveOut(absl::Span<uint64_t> cookies) {
  size_t given = 0;
  size_t kept = 0;
  const size_t issued = issued_count_;
  for (size_t i = 0; i < started_count_; ++i) {
    Record* const record = started_[i];
    if (record->state == State::kComplete && given < cookies.size()) {
      cookies[given++] = record->batch.cookie();
      record->state = State::kFree;
      if (i < issued) --issued_count_;
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
  if (spans_ == nullptr) return taken;
  const CurrentCudaDevice current(ordinal());
  const absl::Status status = current.status().ok() ? spans_->Take(&taken) : current.status();
  if (!status.ok()) Fail(status);
  return taken;
}

}  // namespace

absl::StatusOr<std::unique_ptr<CudaDevice>> CudaDevice::Create(const CudaDeviceOptions& options) {
  const CurrentCudaDevice current(options.ordinal);
  if (!current.status().ok()) return current.status();
  cudaStream_t stream = nullptr;
  // Not held back by what others put on the default stream.
  SLUICE_CUDA_RETURN_IF_ERROR(cudaStreamCreateWithFlags, (&stream, cudaStreamNonBlocking));
  auto device = std::make_unique<CudaDeviceImpl>(options.ordinal, stream);
  if (absl::Status status = device->Prepare(options); !status.ok()) return status;
  return device;
}

}  // namespace sluice
