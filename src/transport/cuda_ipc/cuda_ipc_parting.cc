// Parts ranks after a failure: offers, goodbyes, answers. Ends a transport: its events are kept a
// while for ranks that have yet to open them.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>
#include <deque>
#include <mutex>
#include <vector>

#include "device/cuda/cuda_current.h"
#include "device/cuda/cuda_error.h"
#include "transport/cuda_ipc/cuda_ipc_transport.h"
#include "transport/op_check.h"

namespace sluice {
namespace {

constexpr size_t kRetiredEventsMax = 1024;

struct Event {
  int ordinal;
  cudaEvent_t event;
};

struct Retired {
  std::mutex mutex;
  std::deque<Event> events;
};

Retired& TheRetired() {
  static auto* const retired = new Retired;  // there when the process ends
  return *retired;
}

// Takes interprocess events of GPU `ordinal` whose transport ends. A receiver's operation has ended
// as soon as its copy is ordered. The receiver may then close its session and go. The sender hears
// later which event to wait for, and must find it. The events are destroyed once kRetiredEventsMax
// others have been retired after them. Otherwise they end with the process, which other ranks
// outwait in MPI_Finalize. Any thread.
void RetireCudaEvents(int ordinal, const std::vector<cudaEvent_t>& events) {
  Retired& retired = TheRetired();
  const std::lock_guard lock(retired.mutex);
  for (const cudaEvent_t event : events) retired.events.push_back({ordinal, event});
  const size_t kept = std::max(events.size(), kRetiredEventsMax);
  while (retired.events.size() > kept) {
    const CurrentCudaDevice current(retired.events.front().ordinal);
    (void)CudaStatus(cudaEventDestroy(retired.events.front().event), "cudaEventDestroy");
    retired.events.pop_front();
  }
}

}  // namespace

CudaIpcTransport::~CudaIpcTransport() {
  const bool messages_are_under_way = (offers_ != nullptr && offers_->outstanding() > 0) ||
                                      (answers_ != nullptr && answers_->outstanding() > 0);
  std::vector<cudaEvent_t> events;
  for (const SharedEvent& shared : events_) {
    if (shared.event != nullptr) events.push_back(shared.event);
  }
  RetireCudaEvents(queue_.ordinal, events);
  if (messages_are_under_way) static_cast<void>(messages_.release());
}

bool CudaIpcTransport::Part() {
  if (parting_ == Parting::kNot) parting_ = Parting::kOffers;
  // Goodbyes come behind the answers that are still to come.
  static_cast<void>(PollMessages());
  if (parting_ == Parting::kOffers) {
    if (!offers_->Part() || !SayGoodbye().ok()) return false;
    parting_ = Parting::kGoodbyes;
  }
  if (parting_ == Parting::kGoodbyes) {
    if (!EndUnmet()) return false;
    parting_ = Parting::kAnswers;
  }
  return answers_->Part() && outstanding() == 0;
}

absl::Status CudaIpcTransport::SayGoodbye() {
  if (messages_->slots.empty()) return absl::OkStatus();  // no rank has offered anything
  messages_->goodbye.offer_slot = kNoSlot;
  std::vector<TransportOp> goodbyes;
  for (int peer = 0; peer < size_; ++peer) {
    if (peer == rank_) continue;
    goodbyes.push_back(
        Message(TransportOp::Kind::kSend, peer, kAnswerTag, &messages_->goodbye, kGoodbye));
  }
  return answers_->Start(goodbyes);
}

bool CudaIpcTransport::EndUnmet() {
  bool all = true;
  for (uint32_t number = 0; number < messages_->slots.size(); ++number) {
    Slot& slot = At(number);
    if (!slot.awaits_answer) continue;
    if (!has_left_[static_cast<size_t>(slot.op.peer)]) {
      all = false;
      continue;
    }
    slot.awaits_answer = false;
    slot.status.Update(PartedError(slot.op, rank_));
    Advance(number);
  }
  return all;
}

}  // namespace sluice
