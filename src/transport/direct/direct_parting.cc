// Parting: what is left of sends that nobody is going to meet.
#include <algorithm>
#include <cerrno>

#include "transport/direct/direct_transport.h"
#include "transport/op_check.h"

namespace sluice {

DirectTransport::~DirectTransport() {
  Withdraw();
  for (Number number = 0; number < operations_.size(); ++number) Abandon(number);
  TellBacklogs();
  DropUntold();
  for (DirectPeer& peer : node_.peers()) peer.out().Part();
}

// Its memory stays, so the other end may go on with what it has claimed; nobody copies here.
void DirectTransport::Abandon(Number number) {
  Operation& operation = At(number);
  if (operation.state != State::kCopying || operation.op.fold != nullptr) return;
  if (operation.op.kind == TransportOp::Kind::kSend) {
    // Nobody copies what is left.
    if (operation.by_sender) {
      operation.claims->Close();
      operation.claims->FailRest(ECANCELED);
    }
    return operation.claims->Release();
  }
  if (operation.claims != nullptr) {
    operation.claims->Close();
    operation.claims->FailRest(ECANCELED);
    return;
  }
  DirectMessage refusal;
  refusal.kind = DirectMessage::Kind::kRefuse;
  refusal.op = operation.send;
  refusal.generation = operation.send_generation;
  refusal.error = ECANCELED;
  Tell(operation.peer, refusal);
}

bool DirectTransport::Part() {
  Withdraw();
  if (!parted_) {
    parted_ = true;
    lines_.Forget(lines_.kAllPeers);  // offers alone: no receive waits any more
  }
  TellCutOff();
  if (!broken_.ok()) return outstanding_ == 0;
  TellBacklogs();
  TellParting();
  EndSendsToParted();
  return outstanding_ == 0;
}

void DirectTransport::TellCutOff() {
  cut_off_.Release(parted_, [this](Number number) { ended_.push_back(number); });
}

bool DirectTransport::MeetsSendsOf(int peer) const {
  if (!backlogs_[static_cast<size_t>(peer)].words.empty()) return true;
  return std::any_of(operations_.begin(), operations_.end(), [peer](const Operation& operation) {
    const bool meets = operation.state == State::kMet || operation.state == State::kCopying ||
                       operation.state == State::kTelling;
    return meets && operation.peer == peer && operation.op.kind == TransportOp::Kind::kReceive;
  });
}

void DirectTransport::TellParting() {
  for (int peer = 0; peer < static_cast<int>(backlogs_.size()); ++peer) {
    DirectQueue& queue = PeerAt(peer).out();
    if (!queue.HasParted() && !MeetsSendsOf(peer)) queue.Part();
  }
}

void DirectTransport::EndSendsToParted() {
  for (int peer = 0; peer < static_cast<int>(backlogs_.size()); ++peer) {
    if (!PeerAt(peer).in().HasParted()) continue;
    Hear();  // what it said before
    for (Number number = 0; number < operations_.size(); ++number) {
      const Operation& operation = At(number);
      if (operation.peer == peer && operation.state == State::kWaiting &&
          operation.op.kind == TransportOp::Kind::kSend) {
        End(number, PartedError(operation.op, node_.rank()));
      }
    }
  }
}

}  // namespace sluice
