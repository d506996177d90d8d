// Connections: who calls whom, and when each is looked at.
#include "transport/tcp/tcp_core.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "tensor/check.h"
#include "tensor/error_text.h"

namespace sluice {
namespace {

// How often what has no event is looked at: who is silent at the door.
constexpr int64_t kLookNs = 10'000'000;
constexpr int64_t kSilenceLookNs = 1'000'000'000;
constexpr int kEventsPerWait = 64;
// Until other links have their turn.
constexpr int kRoundsPerServe = 16;

}  // namespace

absl::StatusOr<std::shared_ptr<TcpLinks>> TcpLinks::Listen(const TcpLinksOptions& options) {
  if (options.size < 1 || options.rank < 0 || options.rank >= options.size) {
    return MakeError(absl::StatusCode::kInvalidArgument, "there is no ", RankInWords(options.rank),
                     " of ", options.size);
  }
  SLUICE_ASSIGN_OR_RETURN(TcpListener listener,
                          ListenTcp(options.bind, options.port, options.first_host));
  auto core = std::make_shared<TcpCore>(options, std::move(listener));
  SLUICE_RETURN_IF_ERROR(core->Open());
  return core;
}

TcpCore::TcpCore(const TcpLinksOptions& options, TcpListener listener)
    : options_(options),
      identity_{options.rank, options.size, options.world, options.secret},
      address_(listener.address),
      pid_(getpid()),
      door_(std::move(listener.fd), identity_,
            absl::ToInt64Nanoseconds(options.handshake_timeout)) {
  for (int peer = 0; peer < options.size; ++peer) {
    peers_.push_back(std::make_unique<TcpPeer>(peer, static_cast<TcpLinkUser*>(this), kKinds));
  }
}

absl::Status TcpCore::Open() {
  epoll_ = Fd(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_.is_open()) return absl::UnavailableError(absl::StrCat("epoll: ", ErrnoText(errno)));
  SLUICE_RETURN_IF_ERROR(door_.Open());
  epoll_event event = {EPOLLIN, {}};
  event.data.u32 = static_cast<uint32_t>(size());
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, door_.fd(), &event) != 0) {
    return absl::UnavailableError(absl::StrCat("epoll: ", ErrnoText(errno)));
  }
  return absl::OkStatus();
}

absl::Status TcpCore::SetPeers(const std::vector<std::string>& addresses) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (knows_peers_) return absl::FailedPreconditionError("the peers have been set before");
  if (addresses.size() != peers_.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(addresses.size(), " addresses of ", peers_.size(), " ranks"));
  }
  for (const auto& peer : peers_) {
    if (peer->rank == rank()) continue;
    auto parsed = ParseAddresses(addresses[static_cast<size_t>(peer->rank)]);
    if (!parsed.ok()) {
      return MakeError(absl::StatusCode::kInvalidArgument, RankInWords(peer->rank), ": ",
                       parsed.status());
    }
    peer->addresses = *std::move(parsed);
  }
  knows_peers_ = true;
  return absl::OkStatus();
}

void TcpCore::Connect(int dst) {
  SLUICE_CHECK(dst >= 0 && dst < size() && dst != rank(), "connections are with other ranks");
  const std::lock_guard<std::mutex> lock(mutex_);
  if (At(dst).state == TcpPeer::State::kApart) StartCall(At(dst));
  ProgressLocked();
}

bool TcpCore::IsConnected(int dst) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return At(dst).state == TcpPeer::State::kUp;
}

void TcpCore::StartCall(TcpPeer& peer) {
  SLUICE_CHECK(knows_peers_, "the links do not know their peers");
  peer.state = TcpPeer::State::kCalling;
  peer.call = std::make_unique<TcpCall>(identity_, peer.rank, peer.addresses,
                                        absl::ToInt64Nanoseconds(options_.connect_timeout),
                                        options_.silence);
  calling_.push_back(peer.rank);
}

void TcpCore::ProgressCalls(int64_t now_ns) {
  for (size_t i = 0; i < calling_.size();) {
    TcpPeer& peer = At(calling_[i]);
    TcpCall::State state = TcpCall::State::kCalls;
    if (peer.call != nullptr) state = peer.call->Progress(now_ns);
    if (state == TcpCall::State::kAnswered) {
      Fd fd = peer.call->Take();
      peer.arrival.Close();
      Join(peer, std::move(fd));
    } else if (peer.arrival.is_open() && !peer.call->has_proved()) {
      Welcome(peer, std::move(peer.arrival));
    } else if (state == TcpCall::State::kFailed) {
      EndLink(peer, /*left=*/false, absl::StrCat("it cannot be reached: ", peer.call->failures()));
    }
    if (peer.state == TcpPeer::State::kCalling) {
      ++i;
      continue;
    }
    peer.call = nullptr;
    calling_.erase(calling_.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

// Two ranks may call each other at once. The lower one's call counts, once it has given its proof;
// until then the lower one may take the other's. So the higher one takes any call, and at most one
// of the two calls is ever welcomed.
void TcpCore::TakeArrival(TcpArrival arrival) {
  TcpPeer& peer = At(arrival.rank);
  if (peer.state == TcpPeer::State::kApart) return Welcome(peer, std::move(arrival.fd));
  if (peer.state != TcpPeer::State::kCalling) return;  // it is here, or was
  if (arrival.rank > rank()) {
    peer.arrival = std::move(arrival.fd);  // ProgressCalls decides
    return;
  }
  Welcome(peer, std::move(arrival.fd));
  peer.call = nullptr;
  std::erase(calling_, peer.rank);
}

void TcpCore::Welcome(TcpPeer& peer, Fd fd) {
  const TcpWelcome welcome = MakeWelcome();
  // A new connection has room for so little. If it broke, reading from it says so.
  static_cast<void>(WriteSocket(fd.get(), &welcome, sizeof(welcome)));
  Join(peer, std::move(fd));
}

void TcpCore::Join(TcpPeer& peer, Fd fd) {
  PrepareConnection(fd.get(), options_.silence);
  epoll_event event = {EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, {}};
  event.data.u32 = static_cast<uint32_t>(peer.rank);
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd.get(), &event) != 0) {
    return EndLink(peer, /*left=*/false, absl::StrCat("epoll: ", ErrnoText(errno)));
  }
  if (peer.room == nullptr) peer.MakeRoom();
  peer.link.Open(std::move(fd));
  peer.state = TcpPeer::State::kUp;
  MarkReady(peer);
}

void TcpCore::WaitForEvents(int timeout_ms) {
  std::array<epoll_event, kEventsPerWait> events;
  const int count = epoll_wait(epoll_.get(), events.data(), kEventsPerWait, timeout_ms);
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<size_t>(i)];
    if (event.data.u32 == static_cast<uint32_t>(size())) {
      knocked_ = true;
      continue;
    }
    TcpPeer& peer = At(static_cast<int>(event.data.u32));
    peer.link.Notify((event.events & EPOLLIN) != 0, (event.events & EPOLLOUT) != 0,
                     (event.events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0);
    MarkReady(peer);
  }
}

void TcpCore::Progress() {
  const std::lock_guard<std::mutex> lock(mutex_);
  ProgressLocked();
}

void TcpCore::ProgressLocked() {
  WaitForEvents(0);
  const int64_t now_ns = MonotonicNs();
  progressed_ns_ = now_ns;
  if (std::exchange(knocked_, false)) LetIn(now_ns);
  if (!calling_.empty()) ProgressCalls(now_ns);
  ServeReady();
  if (now_ns - looked_ns_ > kLookNs) {
    looked_ns_ = now_ns;
    door_.DropSilent(now_ns);
    if (now_ns - looked_for_silence_ns_ > kSilenceLookNs) {
      looked_for_silence_ns_ = now_ns;
      LookForSilence();
    }
  }
  if (!broken_.empty()) TellOfBroken(now_ns);
}

void TcpCore::LetIn(int64_t now_ns) {
  door_.Progress(now_ns, &arrivals_);
  for (TcpArrival& arrival : arrivals_) TakeArrival(std::move(arrival));
  arrivals_.clear();
}

bool TcpCore::ServeDoor(absl::Duration idle) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const int64_t now_ns = MonotonicNs();
  if (now_ns - progressed_ns_ > absl::ToInt64Nanoseconds(idle)) {
    LetIn(now_ns);
    door_.DropSilent(now_ns);
  }
  return door_.half_open() > 0;
}

void TcpCore::ProgressUnlessFresh(int64_t fresh_ns) {
  if (MonotonicNs() - progressed_ns_ > fresh_ns) ProgressLocked();
}

void TcpCore::MarkReady(TcpPeer& peer) {
  if (peer.state == TcpPeer::State::kUp && !std::exchange(peer.ready, true)) {
    ready_.push_back(peer.rank);
  }
}

void TcpCore::Flush() {
  if (!calling_.empty()) ProgressCalls(MonotonicNs());
  for (const int rank : ready_) {
    TcpPeer& peer = At(rank);
    if (peer.state == TcpPeer::State::kUp) peer.link.Write();
  }
}

void TcpCore::ServeReady() {
  serving_.swap(ready_);
  for (const int rank : serving_) {
    TcpPeer& peer = At(rank);
    peer.ready = false;
    if (peer.state == TcpPeer::State::kUp) Serve(peer);
  }
  serving_.clear();
}

// Writes between reads: what has come is answered before all has come.
void TcpCore::Serve(TcpPeer& peer) {
  TcpLink& link = peer.link;
  for (int round = 0; round < kRoundsPerServe && !link.has_ended(); ++round) {
    link.Read();
    if (link.has_ended()) break;
    link.Write();
    if (!link.can_read()) break;
  }
  if (link.has_ended()) return EndLink(peer, peer.said_farewell, link.why());
  const bool more =
      link.can_read() || (link.can_write() && (link.has_output() || !peer.sends.empty()));
  if (more) MarkReady(peer);
}

}  // namespace sluice
