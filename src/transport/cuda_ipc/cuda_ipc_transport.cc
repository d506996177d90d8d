// Offers, pulls and answers.
#include "transport/cuda_ipc/cuda_ipc_transport.h"

#include <array>
#include <numeric>
#include <utility>

#include "device/cuda/cuda_current.h"
#include "device/cuda/cuda_error.h"
#include "tensor/check.h"
#include "tensor/error_text.h"
#include "transport/op_check.h"
#include "transport/say_once.h"

namespace sluice {
namespace {

// Cookies of messages are slots, kGoodbye, or inboxes from this one on.
constexpr uint64_t kInbox = uint64_t{1} << 32;

}  // namespace

absl::Status CudaIpcTransport::Reserve(int capacity) {
  SLUICE_CHECK(outstanding() == 0, "Reserve with operations outstanding");
  const size_t slots = static_cast<size_t>(capacity);
  if (slots <= messages_->slots.size()) return absl::OkStatus();
  absl::Status status = offers_->Reserve(capacity);
  if (status.ok()) status = answers_->Reserve(capacity + size_);  // with a goodbye to each rank
  if (!status.ok()) return status;
  offer_ops_.reserve(slots);
  answer_ops_.reserve(slots);
  ended_.resize(slots);
  first_ended_ = 0;
  messages_->slots.resize(slots);
  messages_->inboxes.resize(slots);
  // The lowest number is taken first, so that few events are made where few operations meet.
  unused_.resize(slots);
  std::iota(unused_.rbegin(), unused_.rend(), 0);
  unused_inboxes_ = unused_;
  return absl::OkStatus();
}

absl::Status CudaIpcTransport::Record(uint32_t number, uint32_t* event,
                                      cudaIpcEventHandle_t* handle) {
  *event = number % kCudaIpcEventsMax;
  SharedEvent& shared = events_[*event];
  if (shared.event == nullptr) {
    SLUICE_RETURN_IF_ERROR(MakeEvent(&shared));
  }
  *handle = shared.handle;
  return CudaStatus(cudaEventRecord(shared.event, queue_.stream), "cudaEventRecord");
}

absl::Status CudaIpcTransport::MakeEvent(SharedEvent* event) const {
  constexpr unsigned kFlags = cudaEventDisableTiming | cudaEventInterprocess;
  cudaEvent_t made = nullptr;
  cudaError_t error = cudaEventCreateWithFlags(&made, kFlags);
  if (error != cudaSuccess) return CudaStatus(error, "cudaEventCreateWithFlags");
  error = cudaIpcGetEventHandle(&event->handle, made);
  if (error != cudaSuccess) {
    (void)cudaEventDestroy(made);
    return CudaStatus(error, "cudaIpcGetEventHandle");
  }
  event->event = made;
  return absl::OkStatus();
}

absl::Status CudaIpcTransport::UseStaging(absl::Span<std::byte> staging) {
  SLUICE_CHECK(outstanding() == 0, "UseStaging with operations outstanding");
  const CurrentCudaDevice current(queue_.ordinal);
  return current.status().ok() ? exporter_.Keep(staging) : current.status();
}

bool CudaIpcTransport::CanSendFrom(const std::byte* data) {
  const CurrentCudaDevice current(queue_.ordinal);
  if (exporter_.CanExport(data)) {
    if (exporter_.Offer(data)) return true;
    SayOnce(
        "cuda_ipc: other ranks still have memory open that was freed, and some tensors lie where "
        "it was, or it is too much of it. So these are copied through staging until the next "
        "Compile or Drop, which close it");
    return false;
  }
  SayOnce(
      "cuda_ipc: other processes cannot open the memory of some tensors, so these are copied "
      "through staging. Only memory of cudaMalloc can be opened: not memory of pools "
      "(cudaMallocAsync), not what cuMemMap maps (torch's expandable_segments), not managed "
      "memory");
  return false;
}

// All ranks close what they have open before anything is offered anew.
void CudaIpcTransport::CloseImports() {
  imports_.CloseMemory();
  exporter_.ForgetOffers();
}

absl::Status CudaIpcTransport::Start(absl::Span<const TransportOp> ops) {
  CheckOps(ops, rank_, size_, traits());
  const int capacity = static_cast<int>(messages_->slots.size());
  SLUICE_RETURN_IF_ERROR(CheckCapacity(ops.size(), outstanding(), capacity));
  offer_ops_.clear();
  answer_ops_.clear();
  for (const TransportOp& op : ops) Prepare(op);
  outstanding_ += static_cast<int>(ops.size());
  // The place of an answer must be known before the offer leaves.
  absl::Status status = answers_->Start(answer_ops_);
  return status.ok() ? offers_->Start(offer_ops_) : status;
}

void CudaIpcTransport::Prepare(const TransportOp& op) {
  const uint32_t number = unused_.back();
  unused_.pop_back();
  Slot& slot = At(number);
  slot.op = op;
  slot.status = absl::OkStatus();
  slot.waits = 1;
  if (op.kind == TransportOp::Kind::kSend) {
    slot.waits = 2;  // for the offer to leave, and its answer to come
    slot.awaits_answer = true;
    slot.status = FillOffer(number);
    slot.offer.status = ShortStatus(slot.status);
    const uint32_t inbox = unused_inboxes_.back();
    unused_inboxes_.pop_back();
    Inbox& in = messages_->inboxes[inbox];
    in.peer = op.peer;
    answer_ops_.push_back(
        Message(TransportOp::Kind::kReceive, op.peer, kAnswerTag, &in.answer, kInbox + inbox));
  }
  offer_ops_.push_back(Message(op.kind, op.peer, op.tag, &slot.offer, number));
}

absl::Status CudaIpcTransport::FillOffer(uint32_t number) {
  Slot& slot = At(number);
  const TransportOp& op = slot.op;
  Offer& offer = slot.offer;
  offer.bytes = op.bytes;
  offer.row_bytes = op.row_bytes;
  offer.stride_bytes = op.stride_bytes;
  offer.slot = number;
  if (op.bytes == 0) return absl::OkStatus();
  const size_t extent = ExtentOf(op.bytes, {op.row_bytes, op.stride_bytes});
  const CurrentCudaDevice current(queue_.ordinal);
  absl::Status status = current.status();
  if (status.ok()) {
    const absl::StatusOr<CudaIpcMemory> memory = exporter_.Export(op.data, extent);
    status = memory.status();
    if (memory.ok()) offer.memory = *memory;
  }
  if (status.ok()) status = BeginWork();
  if (status.ok()) status = Record(number, &offer.event_number, &offer.event);
  if (status.ok()) return status;
  return Annotate(status, DescribeOp(op, rank_));
}

// Operations end in any order, and small ones are many: what is drained comes after all of them.
absl::Status CudaIpcTransport::BeginWork() {
  const absl::StatusOr<uint64_t> number = queue_.ComeAfterBatches();
  if (number.ok()) queue_.HandedOut(*number);
  return number.status();
}

absl::StatusOr<int> CudaIpcTransport::Poll(absl::Span<TransportEvent> events) {
  if (outstanding_ > static_cast<int>(ended_count_)) {
    SLUICE_RETURN_IF_ERROR(PollMessages());
  }
  int count = 0;
  while (ended_count_ > 0 && static_cast<size_t>(count) < events.size()) {
    const uint32_t number = ended_[first_ended_];
    first_ended_ = (first_ended_ + 1) % ended_.size();
    --ended_count_;
    Slot& slot = At(number);
    TransportEvent& event = events[static_cast<size_t>(count++)];
    event.cookie = slot.op.cookie;
    event.status = std::move(slot.status);
    unused_.push_back(number);
    --outstanding_;
  }
  return count;
}

absl::Status CudaIpcTransport::PollMessages() {
  std::array<TransportEvent, 32> events;
  for (Transport* messages : {offers_.get(), answers_.get()}) {
    absl::StatusOr<int> count = 0;
    do {
      count = messages->Poll(absl::MakeSpan(events));
      if (!count.ok()) return count.status();
      for (size_t i = 0; i < static_cast<size_t>(*count); ++i) {
        SLUICE_RETURN_IF_ERROR(MessageEnded(messages == offers_.get(), events[i]));
      }
    } while (*count == static_cast<int>(events.size()));
  }
  return absl::OkStatus();
}

absl::Status CudaIpcTransport::MessageEnded(bool offer, const TransportEvent& event) {
  const auto number = static_cast<uint32_t>(event.cookie);
  if (event.cookie == kGoodbye) return absl::OkStatus();
  if (event.cookie >= kInbox) return TakeAnswer(number, event.status);
  if (offer) {
    OfferEnded(number, event.status);
  } else {
    AnswerLeft(number, event.status);
  }
  return absl::OkStatus();
}

void CudaIpcTransport::OfferEnded(uint32_t number, const absl::Status& outcome) {
  Slot& slot = At(number);
  const bool send = slot.op.kind == TransportOp::Kind::kSend;
  if (send || !outcome.ok()) {
    if (absl::IsCancelled(outcome)) {
      slot.status = send ? PartedError(slot.op, rank_) : WithdrawnError(slot.op, rank_);
    } else {
      slot.status.Update(outcome);
    }
    return Advance(number);
  }
  slot.status = Pull(number);
  Answer& answer = slot.answer;
  answer.offer_slot = slot.offer.slot;
  // The sender has not done anything wrong where only the receive has another length.
  answer.status = ShortStatus(absl::IsDataLoss(slot.status) ? absl::OkStatus() : slot.status);
  const TransportOp back =
      Message(TransportOp::Kind::kSend, slot.op.peer, kAnswerTag, &answer, number);
  if (absl::Status status = answers_->Start({back}); !status.ok()) {
    slot.status.Update(status);
    Advance(number);
  }
}

absl::Status CudaIpcTransport::Pull(uint32_t number) {
  Slot& slot = At(number);
  const TransportOp& op = slot.op;
  const Offer& offer = slot.offer;
  Answer& answer = slot.answer;
  answer.has_event = 0;
  if (!offer.status.ok()) {
    return MakeError(offer.status.code(), RankInWords(op.peer),
                     " failed to send: ", offer.status.ToStatus());
  }
  if (offer.bytes != op.bytes) return LengthError(op, rank_, static_cast<size_t>(offer.bytes));
  if (op.bytes == 0) return absl::OkStatus();
  const CurrentCudaDevice current(queue_.ordinal);
  absl::Status status = current.status();
  if (status.ok()) status = EnqueuePullOf(slot);
  if (status.ok()) status = Record(number, &answer.event_number, &answer.event);
  if (status.ok()) {
    answer.has_event = 1;
    return status;
  }
  return Annotate(status, DescribeOp(op, rank_));
}

absl::Status CudaIpcTransport::EnqueuePullOf(const Slot& slot) {
  const TransportOp& op = slot.op;
  const Offer& offer = slot.offer;
  SLUICE_ASSIGN_OR_RETURN(const cudaEvent_t event,
                          imports_.Open(op.peer, offer.event_number, offer.event));
  SLUICE_ASSIGN_OR_RETURN(const std::byte* const src, imports_.Open(op.peer, offer.memory));
  SLUICE_RETURN_IF_ERROR(BeginWork());
  SLUICE_RETURN_IF_ERROR(
      CudaStatus(cudaStreamWaitEvent(queue_.stream, event, 0), "cudaStreamWaitEvent"));
  const PullRows src_rows = {static_cast<size_t>(offer.row_bytes),
                             static_cast<size_t>(offer.stride_bytes)};
  return EnqueuePull(queue_, multiprocessors_, src, src_rows, op.data,
                     {op.row_bytes, op.stride_bytes}, op.bytes);
}

void CudaIpcTransport::AnswerLeft(uint32_t number, const absl::Status& outcome) {
  At(number).status.Update(outcome);
  Advance(number);
}

absl::Status CudaIpcTransport::TakeAnswer(uint32_t inbox, const absl::Status& outcome) {
  const auto& [peer, answer] = messages_->inboxes[inbox];
  unused_inboxes_.push_back(inbox);
  if (!outcome.ok() && parting_ == Parting::kNot) return outcome;  // no telling whose it is
  if (!outcome.ok() || answer.offer_slot == kNoSlot) {
    has_left_[static_cast<size_t>(peer)] = true;
    return absl::OkStatus();
  }
  if (answer.offer_slot >= messages_->slots.size() || At(answer.offer_slot).op.peer != peer) {
    return MakeError(absl::StatusCode::kInternal, RankInWords(peer),
                     " answers what it was not offered");
  }
  Slot& asked = At(answer.offer_slot);
  asked.awaits_answer = false;
  if (!answer.status.ok()) {
    asked.status.Update(MakeError(answer.status.code(), DescribeOp(asked.op, rank_), ": ",
                                  RankInWords(peer), ": ", answer.status.ToStatus()));
  } else if (answer.has_event != 0) {
    asked.status.Update(WaitForPull(peer, answer));
  }
  Advance(answer.offer_slot);
  return absl::OkStatus();
}

absl::Status CudaIpcTransport::WaitForPull(int peer, const Answer& answer) {
  const CurrentCudaDevice current(queue_.ordinal);
  if (!current.status().ok()) return current.status();
  SLUICE_ASSIGN_OR_RETURN(const cudaEvent_t event,
                          imports_.Open(peer, answer.event_number, answer.event));
  return CudaStatus(cudaStreamWaitEvent(queue_.stream, event, 0), "cudaStreamWaitEvent");
}

void CudaIpcTransport::Advance(uint32_t number) {
  if (--At(number).waits > 0) return;
  ended_[(first_ended_ + ended_count_) % ended_.size()] = number;
  ++ended_count_;
}

void CudaIpcTransport::Withdraw() { offers_->Withdraw(); }

}  // namespace sluice
