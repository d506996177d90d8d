// How connections end: broken, or with a farewell.
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/clock.h"
#include "transport/tcp/tcp_core.h"

namespace sluice {
namespace {

// So long the last bytes of a broken connection wait to be asked for.
constexpr int64_t kLastWordsNs = 100'000'000;
constexpr int64_t kFarewellNs = 1'000'000'000;
// Callers that ask again and again who has ended poll for other things besides.
constexpr int64_t kFreshNs = 1'000'000;

}  // namespace

void TcpCore::EndLink(TcpPeer& peer, bool left, const std::string& why) {
  peer.link.Close();
  peer.link.Clear();
  peer.sends.Clear();
  peer.arrival.Close();
  if (left) {
    peer.state = TcpPeer::State::kLeft;
    for (auto& [number, mailbox] : mailboxes_) mailbox->OnLeft(peer.rank);
    return;
  }
  peer.state = TcpPeer::State::kBroken;
  peer.why = MakeError(absl::StatusCode::kUnavailable, "the connection to ", RankInWords(peer.rank),
                       " broke: ", why);
  peer.broken_ns = MonotonicNs();
  broken_.push_back(peer.rank);
}

// Earlier bytes of a broken connection come first.
void TcpCore::TellOfBroken(int64_t now_ns) {
  std::erase_if(broken_, [&](int rank) {
    TcpPeer& peer = At(rank);
    if (peer.in_inboxes > 0 && now_ns - peer.broken_ns < kLastWordsNs) return false;
    for (auto& [number, mailbox] : mailboxes_) mailbox->OnBroken(rank, peer.why);
    broken_text_.Add(broken_text_.empty() ? "" : "; ", RankInWords(rank), " is lost: ", peer.why);
    return true;
  });
}

void TcpCore::LookForSilence() {
  for (const auto& peer : peers_) {
    if (peer->state != TcpPeer::State::kUp || !IsSilent(peer->link.fd(), options_.silence))
      continue;
    EndLink(*peer, /*left=*/false, "its host gives no sign");
  }
}

bool TcpCore::HasOutput() const {
  return std::any_of(peers_.begin(), peers_.end(), [](const auto& peer) {
    return (peer->state == TcpPeer::State::kUp || peer->state == TcpPeer::State::kCalling) &&
           peer->link.has_output();
  });
}

void TcpCore::SayFarewell() {
  const int64_t deadline_ns = MonotonicNs() + kFarewellNs;
  TcpFrame farewell;
  farewell.kind = TcpFrameKind::kFarewell;
  for (const auto& peer : peers_) {
    const bool calls = peer->state == TcpPeer::State::kCalling && peer->link.has_output();
    if (calls || peer->state == TcpPeer::State::kUp) peer->link.Queue(farewell);
    MarkReady(*peer);
  }
  ProgressLocked();
  while (HasOutput() && MonotonicNs() < deadline_ns) {
    WaitForEvents(1);
    ProgressLocked();
  }
  for (const auto& peer : peers_) {
    if (peer->state != TcpPeer::State::kUp) continue;
    // Unread bytes would make the system end the connection at once.
    shutdown(peer->link.fd(), SHUT_WR);
    std::array<std::byte, 4096> unread;
    for (int i = 0; i < 1024 && ReadSocket(peer->link.fd(), unread.data(), unread.size()) > 0;
         ++i) {
    }
  }
}

TcpCore::~TcpCore() {
  // A child has the parent's connections.
  if (getpid() == pid_) SayFarewell();
}

absl::Status TcpCore::CheckRanks() {
  const std::lock_guard<std::mutex> lock(mutex_);
  ProgressUnlessFresh(kFreshNs);
  return broken_text_.empty() ? absl::OkStatus()
                              : broken_text_.ToStatus(absl::StatusCode::kUnavailable);
}

bool TcpCore::HasLeft(int rank) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return At(rank).state == TcpPeer::State::kLeft;
}

bool TcpCore::HasEnded(int rank) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const TcpPeer::State state = At(rank).state;
  return state == TcpPeer::State::kLeft || state == TcpPeer::State::kBroken;
}

}  // namespace sluice
