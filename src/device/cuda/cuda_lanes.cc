// Puts streams behind each other before and after batches.
#include "device/cuda/cuda_lanes.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "device/cuda/cuda_error.h"
#include "device/cuda/cuda_event.h"
#include "device/cuda/cuda_issuer.h"
#include "device/cuda/cuda_spans.h"
#include "device/cuda/cuda_stream.h"
#include "device/device.h"
#include "device/owned_batch.h"
#include "sluice/accelerator.h"
#include "tensor/error_text.h"

namespace sluice {

absl::Status CudaBatchEnd::Prepare() {
  SLUICE_ASSIGN_OR_RETURN(events_[0], UniqueCudaEvent::Create());
  return absl::OkStatus();
}

absl::Status CudaBatchEnd::Record(cudaStream_t stream) {
  UniqueCudaEvent& event = events_[count_];
  if (event.get() == nullptr) {
    SLUICE_ASSIGN_OR_RETURN(event, UniqueCudaEvent::Create());
  }
  ++count_;
  return event.Record(stream);
}

absl::StatusOr<bool> CudaBatchEnd::Passed() const {
  for (size_t i = 0; i < count_; ++i) {
    absl::StatusOr<bool> passed = events_[i].Passed();
    if (!passed.ok() || !*passed) return passed;
  }
  return true;
}

absl::StatusOr<std::unique_ptr<CudaLanes>> CudaLanes::Create(int ordinal, int64_t bounce_bytes,
                                                             bool record_spans) {
  auto lanes = std::make_unique<CudaLanes>();
  // A transport's kernels may stay until other ranks come: copies go before them.
  SLUICE_ASSIGN_OR_RETURN(lanes->transport_, CudaStream::Create(CudaStream::Urgency::kUsual));
  for (Lane* const lane : {&lanes->fill_, &lanes->drain_}) {
    SLUICE_RETURN_IF_ERROR(PrepareLane(ordinal, bounce_bytes / 2, record_spans, lane));
  }
  return lanes;
}

absl::Status CudaLanes::PrepareLane(int ordinal, int64_t bounce_bytes, bool record_spans,
                                    Lane* lane) {
  SLUICE_ASSIGN_OR_RETURN(lane->stream, CudaStream::Create(CudaStream::Urgency::kUrgent));
  SLUICE_ASSIGN_OR_RETURN(lane->issuer,
                          CudaIssuer::Create(ordinal, lane->stream->get(), bounce_bytes));
  if (!record_spans) return absl::OkStatus();
  SLUICE_ASSIGN_OR_RETURN(lane->spans, CudaSpans::Create(lane->stream->get()));
  return absl::OkStatus();
}

absl::StatusOr<bool> CudaLanes::Issue(const OwnedBatch& batch) {
  Lane& lane = At(LaneOf(batch));
  if (!std::exchange(lane.begun, true)) {
    SLUICE_RETURN_IF_ERROR(Begin(batch, &lane));
  }
  absl::StatusOr<bool> issued = lane.issuer->Continue();
  if (!issued.ok() || !*issued) return issued;
  lane.begun = false;
  SLUICE_RETURN_IF_ERROR(End(batch, &lane));
  return true;
}

absl::Status CudaLanes::Begin(const OwnedBatch& batch, Lane* lane) {
  absl::Status status;
  if (batch.after() != nullptr) {
    // The transport's stream is put behind the fill stream before it gets anything.
    for (Lane* const held : {&fill_, &drain_}) {
      SLUICE_RETURN_IF_ERROR(held->issuer->ComeAfter(batch.after()));
    }
    fill_is_ahead_of_transport_ = true;
  }
  if (!batch.empty() && batch.stage() == BatchStage::kAny) {
    if (std::exchange(drain_is_ahead_of_fill_, false)) {
      status = fill_.stream->ComeAfter(drain_.stream.get());
    }
    if (status.ok()) status = ComeAfterTransport(fill_.stream.get());
  } else if (batch.stage() == BatchStage::kDrain) {
    if (std::exchange(fill_is_ahead_of_drain_, false)) {
      status = drain_.stream->ComeAfter(fill_.stream.get());
    }
    if (status.ok()) status = ComeAfterTransport(drain_.stream.get());
  }
  if (!status.ok()) return status;
  lane->issuer->Begin(batch);
  return lane->spans == nullptr ? absl::OkStatus() : lane->spans->Begin(batch.cookie());
}

absl::Status CudaLanes::End(const OwnedBatch& batch, Lane* lane) {
  if (lane->issuer->used_stream()) {
    if (lane == &drain_) {
      drain_is_ahead_of_fill_ = true;
    } else {
      fill_is_ahead_of_transport_ = true;
      if (batch.stage() == BatchStage::kAny) fill_is_ahead_of_drain_ = true;
    }
  }
  if (lane->spans != nullptr) {
    SLUICE_RETURN_IF_ERROR(lane->spans->End());
  }
  if (batch.then() == nullptr) return absl::OkStatus();
  // It marks the end of everything.
  absl::Status status = drain_.stream->ComeAfter(fill_.stream.get());
  if (status.ok()) status = ComeAfterTransport(drain_.stream.get());
  return status.ok() ? batch.then()->Record(StreamHandle{drain_stream()}) : status;
}

bool CudaLanes::IsOnStream(const OwnedBatch& batch) const {
  // One of nothing is there to learn when all before it is complete.
  return batch.empty() || batch.after() != nullptr || At(LaneOf(batch)).issuer->used_stream();
}

absl::Status CudaLanes::RecordEnd(const OwnedBatch& batch, CudaBatchEnd* end) {
  end->Clear();
  if (!batch.empty() || !KeepsOrder(batch)) return end->Record(At(LaneOf(batch)).stream->get());
  for (const cudaStream_t stream : {fill_stream(), transport_stream(), drain_stream()}) {
    SLUICE_RETURN_IF_ERROR(end->Record(stream));
  }
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> CudaLanes::HoldBackTransport() {
  if (transport_begun_ > 0) {
    // The end of the piece before.
    UniqueCudaEvent end;
    if (!spare_.empty()) {
      end = std::move(spare_.back());
      spare_.pop_back();
    } else {
      SLUICE_ASSIGN_OR_RETURN(end, UniqueCudaEvent::Create());
    }
    SLUICE_RETURN_IF_ERROR(end.Record(transport_stream()));
    transport_ends_.push_back(std::move(end));
  }
  ++transport_begun_;
  DropEnds();
  if (std::exchange(fill_is_ahead_of_transport_, false)) {
    SLUICE_RETURN_IF_ERROR(transport_->ComeAfter(fill_.stream.get()));
  }
  return transport_begun_;
}

void CudaLanes::TransportHandedOut(uint64_t number) {
  transport_handed_out_ = std::max(transport_handed_out_, number);
  DropEnds();
}

// The first end that is kept is that of what was handed out last.
void CudaLanes::DropEnds() {
  while (!transport_ends_.empty() &&
         transport_begun_ - transport_ends_.size() < transport_handed_out_) {
    spare_.push_back(std::move(transport_ends_.front()));
    transport_ends_.pop_front();
  }
}

absl::Status CudaLanes::ComeAfterTransport(CudaStream* stream) {
  if (transport_handed_out_ == 0) return absl::OkStatus();
  if (transport_handed_out_ == transport_begun_) return stream->ComeAfter(transport_.get());
  return stream->ComeAfter(transport_ends_.front());
}

bool CudaLanes::IsIdle() const {
  return fill_.stream->IsIdle() && transport_->IsIdle() && drain_.stream->IsIdle();
}

absl::Status CudaLanes::TakeSpans(std::vector<DeviceSpan>* spans) {
  for (Lane* const lane : {&fill_, &drain_}) {
    if (lane->spans == nullptr) continue;
    const size_t first = spans->size();
    SLUICE_RETURN_IF_ERROR(lane->spans->Take(spans));
    for (size_t i = first; i < spans->size(); ++i) (*spans)[i].row = lane == &fill_ ? 0 : 1;
  }
  return absl::OkStatus();
}

}  // namespace sluice
