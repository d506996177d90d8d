// How ranks part after a failure: offers, goodbyes, answers.
#include <vector>

#include "transport/cuda_ipc/cuda_ipc_transport.h"
#include "transport/op_check.h"

namespace sluice {

bool CudaIpcTransport::Part() {
  if (parting_ == Parting::kNot) parting_ = Parting::kOffers;
  // What comes last is behind the answers that are still to come.
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
