// Brings ends together: offers, receives, and the words that pass between them.
#include "transport/direct/direct_transport.h"

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "tensor/check.h"
#include "tensor/error_text.h"
#include "tensor/round.h"
#include "transport/direct/direct_copy.h"
#include "transport/op_check.h"

namespace sluice {
namespace {

// Copied by one Poll, so that its caller can do something else now and then.
constexpr int64_t kBytesPerPoll = 4 << 20;
// Room at first, beside this rank's operations, for offers from peers that wait.
constexpr size_t kOffersAtFirst = 256;

// Whether another rank may have a word to say about it, as LastWords has it. A rank that has failed
// gives up its folds and ends (Unavailable), and frees its memory before that (InvalidArgument, of
// EFAULT).
bool MayHaveCause(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsInvalidArgument(status);
}

}  // namespace

DirectTransport::DirectTransport(DirectNode node, PrivateCopies private_copies)
    : NearTransport({.name = "direct", .takes_folds = node.ReadsAll()}),
      node_(std::move(node)),
      backlogs_(node_.peers().size()),
      has_ended_(node_.peers().size()),
      private_copies_(private_copies) {
  user_of_claims_.fill(kNone);
}

absl::Status DirectTransport::Reserve(int capacity) {
  const size_t wanted = static_cast<size_t>(capacity);
  while (operations_.size() < wanted) {
    unused_.push_back(static_cast<Number>(operations_.size()));
    operations_.emplace_back();
  }
  copying_.reserve(wanted);
  handed_over_.reserve(wanted);
  lines_.Reserve(kOffersAtFirst + operations_.size(), node_.peers().size());
  ended_.reserve(2 * wanted);
  packed_.reserve(DirectSlots::kSlots * node_.peers().size());
  folder_.Reserve(wanted);
  return absl::OkStatus();
}

absl::Status DirectTransport::Start(absl::Span<const TransportOp> ops) {
  CheckOps(ops, node_.rank(), node_.size(), traits());
  const int capacity = static_cast<int>(operations_.size());
  SLUICE_RETURN_IF_ERROR(CheckCapacity(CountOperations(ops), outstanding_, capacity));
  for (const TransportOp& op : ops) {
    if (op.fold != nullptr) {
      StartFold(op);
      continue;
    }
    const Number number = Add(op);
    const Operation& operation = At(number);
    if (has_ended_[static_cast<size_t>(operation.peer)] != 0) {
      End(number, PeerEndedError(operation));
    } else if (op.kind == TransportOp::Kind::kSend) {
      StartSend(number);
    } else {
      StartReceive(number);
    }
  }
  return absl::OkStatus();
}

DirectTransport::Number DirectTransport::Add(const TransportOp& op) {
  const Number number = unused_.back();
  unused_.pop_back();
  ++outstanding_;
  Operation& operation = At(number);
  operation.op = op;
  operation.state = State::kWaiting;
  operation.peer = node_.PeerOf(op.peer);
  SLUICE_CHECK(operation.peer >= 0, "the peer is on another node");
  return number;
}

void DirectTransport::Free(Number number) {
  const uint32_t generation = At(number).generation + 1;
  At(number) = Operation();
  At(number).generation = generation;
  unused_.push_back(number);
  --outstanding_;
}

void DirectTransport::StartSend(Number number) {
  const Operation& operation = At(number);
  DirectMessage offer;
  offer.kind = DirectMessage::Kind::kOffer;
  offer.op = number;
  offer.generation = operation.generation;
  offer.tag = static_cast<uint32_t>(operation.op.tag);
  offer.place = node_.PlaceOf(operation.op.data, DirectRows::Of(operation.op));
  Tell(operation.peer, offer);
}

void DirectTransport::StartReceive(Number number) {
  const Operation& operation = At(number);
  const std::optional<DirectMessage> offer = lines_.TakeOffer(operation.peer, operation.op.tag);
  offer ? Meet(number, *offer) : lines_.AddReceive(operation.peer, operation.op.tag, number);
}

bool DirectTransport::TellOrKeep(int peer, const Unsaid& word) {
  Backlog& backlog = backlogs_[static_cast<size_t>(peer)];
  if (backlog.words.empty() && PeerAt(peer).out().Push(word.message)) return true;
  backlog.words.push_back(word);
  return false;
}

void DirectTransport::TellAndEnd(Number receive, const DirectMessage& message,
                                 absl::Status status) {
  Operation& operation = At(receive);
  if (TellOrKeep(operation.peer, {message, receive})) return End(receive, std::move(status));
  operation.state = State::kTelling;
  operation.status = std::move(status);
}

void DirectTransport::EndTold(Number number) {
  if (At(number).is_part) return EndPart(number);
  if (At(number).by_message) return HandOver(number);
  End(number, std::move(At(number).status));
}

void DirectTransport::TellBacklogs() {
  for (size_t peer = 0; peer < backlogs_.size(); ++peer) {
    Backlog& backlog = backlogs_[peer];
    for (; backlog.first < backlog.words.size(); ++backlog.first) {
      const Unsaid& word = backlog.words[backlog.first];
      if (!PeerAt(static_cast<int>(peer)).out().Push(word.message)) break;
      if (word.ends != kNone) EndTold(word.ends);
    }
    if (backlog.first < std::max(kToldMax, backlog.words.size() / 2) &&
        backlog.first < backlog.words.size()) {
      continue;
    }
    backlog.words.erase(backlog.words.begin(),
                        backlog.words.begin() + static_cast<ptrdiff_t>(backlog.first));
    backlog.first = 0;
  }
}

void DirectTransport::Hear() {
  DirectMessage message;
  for (int peer = 0; peer < static_cast<int>(backlogs_.size()); ++peer) {
    while (broken_.ok() && PeerAt(peer).in().Pop(&message)) Take(peer, message);
  }
}

void DirectTransport::Take(int peer, const DirectMessage& message) {
  if (message.kind == DirectMessage::Kind::kOffer) return TakeOffer(peer, message);
  if (message.kind == DirectMessage::Kind::kPacked) return TakePacked(peer, message);
  if (message.op >= operations_.size()) return Refuse(peer, "of an operation that there is not");
  Operation& send = At(message.op);
  if (send.peer != peer || send.generation != message.generation || send.state != State::kWaiting ||
      send.op.kind != TransportOp::Kind::kSend) {
    return Refuse(peer, "of a send that does not wait");
  }
  switch (message.kind) {
    case DirectMessage::Kind::kAccept:
      TakeAccept(peer, message);
      break;
    case DirectMessage::Kind::kByMessage:
      may_hand_over() ? HandOver(message.op) : Refuse(peer, "of a message, which it need not be");
      break;
    case DirectMessage::Kind::kDone:
      End(message.op, absl::OkStatus());
      break;
    case DirectMessage::Kind::kRefuse:
      End(message.op,
          message.error != 0
              ? CopyError(send, message.error)
              : MakeError(absl::StatusCode::kDataLoss, DescribeOp(send.op, node_.rank()),
                          ": it met a receive of ", message.place.rows.bytes, " bytes"));
      break;
    default:
      Refuse(peer, "of no kind");
  }
}

void DirectTransport::TakeAccept(int peer, const DirectMessage& accept) {
  if (accept.claims >= DirectNode::kClaims) return Refuse(peer, "with claims that there are not");
  if (accept.stores != WriteHint::kPlain && accept.stores != WriteHint::kStreaming) {
    return Refuse(peer, "with stores of no kind");
  }
  Operation& send = At(accept.op);
  DirectClaims& claims = PeerAt(peer).claims(accept.claims);
  const uint64_t piece_bytes = claims.piece_bytes();
  if (accept.place.rows.bytes != send.op.bytes || !PeerAt(peer).HasPlace(accept.place) ||
      piece_bytes == 0 || (accept.by_slots && piece_bytes > DirectSlots::kSlotBytes)) {
    return Refuse(peer, "with a place that there is not");
  }
  send.state = State::kCopying;
  send.theirs = accept.place;
  send.op.stores = accept.stores;
  send.by_sender = accept.by_sender;
  send.by_slots = accept.by_slots;
  send.claims_number = accept.claims;
  send.is_reluctant = CostsMore(accept.place, node_.PlaceOf(send.op.data, DirectRows::Of(send.op)));
  send.claims = &claims;
  send.piece_bytes = piece_bytes;
  send.pieces = CeilDiv(send.op.bytes, piece_bytes);
  copying_.push_back(accept.op);
}

void DirectTransport::Refuse(int peer, const char* what) {
  broken_.Update(MakeError(absl::StatusCode::kInternal, RankInWords(PeerAt(peer).rank()),
                           ", process ", PeerAt(peer).pid(), ", has written a word ", what, " to ",
                           RankInWords(node_.rank())));
}

void DirectTransport::TakeOffer(int peer, const DirectMessage& offer) {
  if (parted_) return;
  if (!PeerAt(peer).HasPlace(offer.place)) return Refuse(peer, "with a place that there is not");
  const int tag = static_cast<int>(offer.tag);
  const std::optional<Number> receive = lines_.TakeReceive(peer, tag);
  if (receive) return Meet(*receive, offer);
  lines_.AddOffer(peer, tag, offer);
}

absl::StatusOr<int> DirectTransport::Poll(absl::Span<TransportEvent> events) {
  TellBacklogs();
  Hear();
  if (!broken_.ok()) return broken_;
  TellCutOff();
  if (Copy(kBytesPerPoll) || first_ended_ < ended_.size()) {
    idle_polls_ = 0;
  } else if (++idle_polls_ % (parted_ ? kPollsPerLookParted : kPollsPerLook) == 0) {
    LookForEndedPeers();
  }
  int count = 0;
  while (static_cast<size_t>(count) < events.size() && first_ended_ < ended_.size()) {
    const Number number = ended_[first_ended_++];
    Operation& operation = At(number);
    events[static_cast<size_t>(count++)] = {operation.op.cookie, std::move(operation.status)};
    Free(number);
  }
  if (first_ended_ == ended_.size()) {
    ended_.clear();
    first_ended_ = 0;
  }
  return count;
}

void DirectTransport::Withdraw() {
  lines_.TakeReceives(lines_.kAllPeers, [this](Number number) {
    At(number).is_part ? WithdrawPart(number)
                       : End(number, WithdrawnError(At(number).op, node_.rank()));
  });
  for (Operation& operation : operations_) {
    if (operation.state == State::kWaiting) operation.may_claim = false;
    if (operation.state == State::kCopying) CloseClaims(&operation);
  }
}

void DirectTransport::End(Number number, absl::Status status) {
  if (At(number).claims_number != kNone && At(number).op.kind == TransportOp::Kind::kReceive) {
    user_of_claims_[At(number).claims_number] = kNone;
  }
  At(number).status = std::move(status);
  At(number).state = State::kEnded;
  if (!parted_ && MayHaveCause(At(number).status)) {
    cut_off_.Hold(number);
  } else {
    ended_.push_back(number);
  }
}

void DirectTransport::LookForEndedPeers() {
  for (int peer = 0; peer < static_cast<int>(backlogs_.size()); ++peer) {
    uint8_t& has_ended = has_ended_[static_cast<size_t>(peer)];
    if (has_ended != 0 || !PeerAt(peer).HasEnded()) continue;
    has_ended = 1;
    // Words and copies of the peer before its end count.
    Hear();
    Copy(kBytesPerPoll);
    Fail(peer);
  }
}

void DirectTransport::Fail(int peer) {
  lines_.Forget(peer);
  for (const Operation& part : operations_) {
    if (part.is_part && part.peer == peer && part.fold != kNone) {
      EndFold(part.fold, PeerEndedError(part));
    }
  }
  for (size_t i = 0; i < operations_.size(); ++i) {
    Operation& operation = operations_[i];
    if (operation.peer != peer) continue;
    if (operation.is_part) {
      // The part's fold has failed, and nobody is there to be told.
      EndPart(static_cast<Number>(i));
    } else if (operation.state == State::kWaiting || operation.state == State::kCopying) {
      End(static_cast<Number>(i), PeerEndedError(operation));
    } else if (operation.state == State::kTelling) {
      End(static_cast<Number>(i),
          operation.by_message ? PeerEndedError(operation) : std::move(operation.status));
    }
  }
  copying_.erase(std::remove_if(copying_.begin(), copying_.end(),
                                [this](Number i) { return At(i).state != State::kCopying; }),
                 copying_.end());
  DropPacked(peer);
  backlogs_[static_cast<size_t>(peer)] = Backlog();
}

absl::Status DirectTransport::PeerEndedError(const Operation& operation) {
  const DirectPeer& peer = PeerAt(operation.peer);
  return MakeError(absl::StatusCode::kUnavailable, DescribeOp(operation.op, node_.rank()), ": ",
                   RankInWords(peer.rank()), ", process ", peer.pid(), ", has ended");
}

absl::Status DirectTransport::CopyError(const Operation& operation, int error) {
  if (error == ESRCH) return PeerEndedError(operation);
  if (error == ECANCELED) {
    const DirectPeer& peer = PeerAt(operation.peer);
    return MakeError(absl::StatusCode::kUnavailable, DescribeOp(operation.op, node_.rank()), ": ",
                     RankInWords(peer.rank()), ", process ", peer.pid(),
                     ", has given it up, or the fold that it belongs to");
  }
  const absl::Status status = absl::ErrnoToStatus(error, "it cannot be copied");
  return Annotate(status, DescribeOp(operation.op, node_.rank()));
}

}  // namespace sluice
