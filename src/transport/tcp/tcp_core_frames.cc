// Sends and takes frames over the connections: control records, and the frames of transports.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tensor/check.h"
#include "tensor/error_text.h"
#include "transport/tcp/tcp_core.h"

namespace sluice {
namespace {

// Pieces of messages that wait to be written to one rank: control that comes then is behind them.
constexpr size_t kPiecesQueued = 4;
// Several kinds are asked for in turn, beside transports.
constexpr int64_t kFreshControlNs = 10'000;
// Transports that others have opened, and this rank has not.
constexpr size_t kUnopenedMax = 4096;

absl::Status AgainstRules(const char* what) {
  return absl::InternalError(absl::StrCat("it breaks the rules of links: ", what));
}

}  // namespace

absl::Status TcpCore::SendControl(int dst, uint8_t kind, absl::Span<const std::byte> record) {
  SLUICE_CHECK(dst >= 0 && dst < size() && dst != rank(), "a record is for another rank");
  SLUICE_CHECK(kind < kKinds, "there is no such kind of record");
  SLUICE_CHECK(record.size() <= kMaxControlBytes, "the record is too long");
  const std::lock_guard<std::mutex> lock(mutex_);
  TcpPeer& peer = At(dst);
  if (peer.state == TcpPeer::State::kBroken) return peer.why;
  if (peer.state == TcpPeer::State::kLeft) {
    return MakeError(absl::StatusCode::kUnavailable, RankInWords(dst), " has left");
  }
  TcpPeer::Control& untaken = peer.untaken[kind];
  if (untaken.bytes + record.size() > kMaxControlBytes) {
    return MakeError(absl::StatusCode::kResourceExhausted, RankInWords(dst), " has not taken ",
                     untaken.records, " records of kind ", kind, ", ", untaken.bytes, " bytes; ",
                     record.size(), " more are beyond ", kMaxControlBytes);
  }
  untaken.bytes += record.size();
  ++untaken.records;
  TcpFrame frame;
  frame.kind = TcpFrameKind::kControl;
  frame.channel = kind;
  frame.length = record.size();
  if (peer.state == TcpPeer::State::kApart) StartCall(peer);
  peer.link.QueueOwned(frame, {record.begin(), record.end()});
  MarkReady(peer);
  Flush();
  return absl::OkStatus();
}

bool TcpCore::PollControl(uint8_t kind, int* src, std::vector<std::byte>* record) {
  SLUICE_CHECK(kind < kKinds, "there is no such kind of record");
  const std::lock_guard<std::mutex> lock(mutex_);
  std::deque<Record>& inbox = inboxes_[kind];
  if (inbox.empty()) ProgressUnlessFresh(kFreshControlNs);
  if (inbox.empty()) return false;
  *src = inbox.front().src;
  *record = std::move(inbox.front().bytes);
  inbox.pop_front();
  --At(*src).in_inboxes;
  TcpFrame frame;
  frame.kind = TcpFrameKind::kTaken;
  frame.channel = kind;
  frame.bytes = record->size();
  Send(*src, frame);
  Flush();
  return true;
}

int TcpCore::UntakenRecords(int dst, uint8_t kind) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return At(dst).untaken[kind].records;
}

uint64_t TcpCore::Mark(int dst) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return At(dst).link.queued();
}

bool TcpCore::IsSent(int dst, uint64_t mark) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return At(dst).link.written() >= mark;
}

void TcpCore::CloseMailbox(uint32_t number) {
  const auto found = mailboxes_.find(number);
  found->second->Leave();
  mailboxes_.erase(found);
  Flush();
}

TcpMailbox* TcpCore::Find(uint32_t number) {
  const auto found = mailboxes_.find(number);
  return found == mailboxes_.end() ? nullptr : found->second.get();
}

void TcpCore::TakeMarks(std::vector<uint64_t>* marks) const {
  marks->clear();
  for (const auto& peer : peers_) marks->push_back(peer->link.queued());
}

bool TcpCore::HasPassed(const std::vector<uint64_t>& marks) const {
  for (size_t i = 0; i < marks.size(); ++i) {
    const TcpPeer& peer = *peers_[i];
    const bool lives = peer.state == TcpPeer::State::kUp || peer.state == TcpPeer::State::kCalling;
    if (lives && peer.link.written() < marks[i]) return false;
  }
  return true;
}

absl::Status TcpCore::OnFrame(TcpLink& link, const TcpFrame& frame, TcpRows* rows) {
  TcpPeer& peer = At(link.peer());
  switch (frame.kind) {
    case TcpFrameKind::kControl:
      return OnControl(peer, frame, rows);
    case TcpFrameKind::kTaken:
      return OnTaken(peer, frame);
    case TcpFrameKind::kFarewell:
      peer.said_farewell = true;
      return absl::CancelledError("farewell");
    case TcpFrameKind::kNothing:
      return frame.length == 0 ? absl::OkStatus() : AgainstRules("nothing with bytes");
    case TcpFrameKind::kOffer:
    case TcpFrameKind::kGrant:
    case TcpFrameKind::kMet:
    case TcpFrameKind::kData:
    case TcpFrameKind::kAbort:
    case TcpFrameKind::kPart:
      return OnMessage(peer, frame, rows);
  }
  return AgainstRules("an unknown frame");
}

absl::Status TcpCore::OnControl(TcpPeer& peer, const TcpFrame& frame, TcpRows* rows) {
  // The sender keeps to the limit of a kind: it never counts fewer untaken bytes than there are.
  if (frame.channel >= kKinds || frame.length > kMaxControlBytes) return AgainstRules("a record");
  peer.record = std::vector<std::byte>(frame.length);
  rows->data = peer.record.data();
  return absl::OkStatus();
}

absl::Status TcpCore::OnTaken(TcpPeer& peer, const TcpFrame& frame) {
  if (frame.channel >= kKinds || frame.length != 0) return AgainstRules("a receipt");
  TcpPeer::Control& untaken = peer.untaken[frame.channel];
  if (untaken.records == 0 || untaken.bytes < frame.bytes) return AgainstRules("a receipt");
  --untaken.records;
  untaken.bytes -= frame.bytes;
  return absl::OkStatus();
}

// Frames without bytes of their own have none. Frames of a transport that is no more are answered,
// so that the other end does not wait.
absl::Status TcpCore::OnMessage(TcpPeer& peer, const TcpFrame& frame, TcpRows* rows) {
  const bool has_bytes = frame.kind == TcpFrameKind::kOffer || frame.kind == TcpFrameKind::kData;
  if (frame.length > (has_bytes ? kPieceBytes : 0)) return AgainstRules("the length of a frame");
  if (TcpMailbox* const mailbox = Find(frame.transport); mailbox != nullptr) {
    return mailbox->OnFrame(peer.rank, frame, rows);
  }
  TcpFrame answer;
  answer.transport = frame.transport;
  if (opened_.count(frame.transport) != 0) {
    if (frame.kind == TcpFrameKind::kOffer) {
      answer.kind = TcpFrameKind::kPart;
      answer.flags = kGoneFlag;
      Send(peer.rank, answer);
    } else if (frame.kind == TcpFrameKind::kGrant) {
      answer.kind = TcpFrameKind::kAbort;
      answer.slot = frame.tag;
      Send(peer.rank, answer);
    }
    return absl::OkStatus();
  }
  if (frame.kind == TcpFrameKind::kPart) return absl::OkStatus();
  if (frame.kind != TcpFrameKind::kOffer) return AgainstRules("a transport that is not open");
  if (mailboxes_.size() >= opened_.size() + kUnopenedMax) return AgainstRules("its transports");
  auto made =
      std::make_unique<TcpMailbox>(rank(), size(), frame.transport, static_cast<TcpOutlet*>(this));
  TcpMailbox* const mailbox = made.get();
  mailboxes_[frame.transport] = std::move(made);
  return mailbox->OnFrame(peer.rank, frame, rows);
}

absl::Status TcpCore::OnPayload(TcpLink& link, const TcpFrame& frame) {
  TcpPeer& peer = At(link.peer());
  if (frame.kind == TcpFrameKind::kControl) {
    inboxes_[frame.channel].push_back({peer.rank, std::move(peer.record)});
    ++peer.in_inboxes;
    return absl::OkStatus();
  }
  TcpMailbox* const mailbox = Find(frame.transport);
  const bool of_message = frame.kind == TcpFrameKind::kOffer || frame.kind == TcpFrameKind::kData;
  if (mailbox == nullptr || !of_message) return absl::OkStatus();
  return mailbox->OnPayload(peer.rank, frame);
}

void TcpCore::OnSent(TcpLink& /*link*/, const TcpFrame& frame, uint32_t owner) {
  if (TcpMailbox* const mailbox = Find(frame.transport)) mailbox->OnSent(frame, owner);
}

void TcpCore::Refill(TcpLink& link) {
  TcpPeer& peer = At(link.peer());
  while (!peer.sends.empty() && link.pending_frames() < kPiecesQueued) {
    const TcpSendQueue::Message message = peer.sends.front();
    TcpMailbox* const mailbox = Find(message.transport);
    if (mailbox == nullptr) {
      peer.sends.Pop();
      continue;
    }
    TcpFrame frame;
    TcpRows rows;
    if (mailbox->NextPiece(message.owner, &frame, &rows)) peer.sends.Pop();
    link.QueueBorrowed(frame, rows, message.owner);
  }
}

void TcpCore::Send(int dst, const TcpFrame& frame) {
  TcpPeer& peer = At(dst);
  if (!IsLinked(dst)) {
    if (peer.state != TcpPeer::State::kApart) return;
    StartCall(peer);
  }
  peer.link.Queue(frame);
  MarkReady(peer);
}

void TcpCore::SendBorrowed(int dst, const TcpFrame& frame, const TcpRows& rows, uint32_t owner) {
  TcpPeer& peer = At(dst);
  if (!IsLinked(dst)) {
    if (peer.state != TcpPeer::State::kApart) return;
    StartCall(peer);
  }
  peer.link.QueueBorrowed(frame, rows, owner);
  MarkReady(peer);
}

void TcpCore::SendMessage(int dst, uint32_t transport, uint32_t owner) {
  TcpPeer& peer = At(dst);
  peer.sends.Push({transport, owner});
  MarkReady(peer);
}

void TcpCore::Recall(int dst, uint32_t transport, int64_t owner) {
  At(dst).link.Recall(transport, owner);
}

bool TcpCore::TakeCredit(int dst) {
  int& credits = At(dst).credits;
  if (credits == 0) return false;
  --credits;
  return true;
}

void TcpCore::DropIncoming(int src, uint32_t transport) {
  TcpLink& link = At(src).link;
  if (link.in_payload() && link.incoming().transport == transport &&
      link.incoming().kind != TcpFrameKind::kControl) {
    link.DropIncoming();
  }
}

absl::Status TcpCore::Broken(int dst) {
  const TcpPeer& peer = At(dst);
  if (peer.state != TcpPeer::State::kBroken) return absl::OkStatus();
  return peer.why;
}

bool TcpCore::IsLinked(int dst) {
  const TcpPeer::State state = At(dst).state;
  return state == TcpPeer::State::kUp || state == TcpPeer::State::kCalling;
}

}  // namespace sluice
