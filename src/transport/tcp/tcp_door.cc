// Listening, accepting, and the listener's half of the handshake.
#include "transport/tcp/tcp_door.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "net/address.h"
#include "tensor/error_text.h"

namespace sluice {
namespace {

// Most accepts of one Progress, so that a flood of strangers does not hold a rank.
constexpr int kAcceptsPerLook = 64;
// All callers, and the listener.
constexpr int kEventsPerLook = static_cast<int>(TcpDoor::kMaxHalfOpen) + 1;
// Ranks of a large world may all come at once.
constexpr int kBacklog = 4096;

absl::StatusOr<Fd> ListenAtHost(const std::string& host, int port) {
  SLUICE_ASSIGN_OR_RETURN(const SocketAddress address, MakeAddress(host, port));
  const char* call = nullptr;
  Fd fd = ListenAt(address, kBacklog, /*again=*/port != 0, &call);
  if (fd.is_open()) return fd;
  return absl::UnavailableError(SocketErrorText(call, address, errno));
}

}  // namespace

absl::StatusOr<TcpListener> ListenTcp(const std::string& bind, int port, const std::string& first) {
  absl::StatusOr<Fd> fd = ListenAtHost(bind.empty() ? "::" : bind, port);
  const bool with_ipv6 = fd.ok();
  if (!fd.ok() && bind.empty()) fd = ListenAtHost("0.0.0.0", port);
  if (!fd.ok()) return fd.status();
  const std::vector<std::string> hosts =
      bind.empty() ? HostAddresses(with_ipv6, first) : std::vector<std::string>{bind};
  if (hosts.size() > kMaxAddresses) {
    return absl::InvalidArgumentError(
        absl::StrCat("this host has ", hosts.size(), " addresses, more than ", kMaxAddresses,
                     ": name the one at which others reach it, by SLUICE_BIND"));
  }
  const int bound = AddressOfSocket(fd->get()).port();
  std::vector<std::string> texts;
  for (const std::string& host : hosts) {
    const absl::StatusOr<SocketAddress> address = MakeAddress(host, bound);
    if (address.ok()) texts.push_back(address->Text());
  }
  return TcpListener{*std::move(fd), absl::StrJoin(texts, ",")};
}

TcpDoor::TcpDoor(Fd listener, const TcpIdentity& identity, int64_t timeout_ns)
    : identity_(identity), timeout_ns_(timeout_ns), listener_(std::move(listener)) {
  callers_.reserve(kMaxHalfOpen);
}

absl::Status TcpDoor::Open() {
  epoll_ = Fd(epoll_create1(EPOLL_CLOEXEC));
  epoll_event event = {EPOLLIN, {}};
  event.data.fd = listener_.get();
  if (!epoll_.is_open() || epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, listener_.get(), &event) != 0) {
    return absl::UnavailableError(absl::StrCat("epoll: ", ErrnoText(errno)));
  }
  return absl::OkStatus();
}

bool TcpDoor::MakeRoom(int64_t now_ns) {
  if (callers_.size() < kMaxHalfOpen) return true;
  const auto find_slow = [&](bool greeted) {
    return std::find_if(callers_.begin(), callers_.end(), [&](const Caller& caller) {
      return caller.greeted == greeted && now_ns - caller.since_ns > kPatienceNs;
    });
  };
  auto slow = find_slow(false);
  // A hello is no secret: whoever has heard one can say it.
  if (slow == callers_.end()) slow = find_slow(true);
  if (slow == callers_.end()) return false;
  callers_.erase(slow);
  return true;
}

void TcpDoor::Accept(int64_t now_ns) {
  for (int i = 0; i < kAcceptsPerLook && MakeRoom(now_ns); ++i) {
    Fd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!fd.is_open()) return;
    epoll_event event = {EPOLLIN | EPOLLRDHUP, {}};
    event.data.fd = fd.get();
    if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd.get(), &event) != 0) continue;
    Caller& caller = callers_.emplace_back();
    caller.fd = std::move(fd);
    caller.since_ns = now_ns;
  }
}

void TcpDoor::Progress(int64_t now_ns, std::vector<TcpArrival>* arrivals) {
  std::array<epoll_event, kEventsPerLook> events;
  const int count = epoll_wait(epoll_.get(), events.data(), kEventsPerLook, 0);
  bool has_callers = false;
  for (int i = 0; i < count; ++i) {
    const int fd = events[static_cast<size_t>(i)].data.fd;
    if (fd == listener_.get()) {
      has_callers = true;
    } else {
      Serve(fd, arrivals);
    }
  }
  // Last: whoever makes room has had its say heard.
  if (has_callers) Accept(now_ns);
}

void TcpDoor::Serve(int fd, std::vector<TcpArrival>* arrivals) {
  const auto caller = std::find_if(callers_.begin(), callers_.end(),
                                   [fd](const Caller& each) { return each.fd.get() == fd; });
  if (caller == callers_.end()) return;  // it has made room for another one
  const Step step = Hear(*caller);
  if (step == Step::kWaits) return;
  if (step == Step::kEnters) {
    // Later bytes are for another one to read.
    epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
    arrivals->push_back({std::move(caller->fd), caller->hello.src});
  }
  callers_.erase(caller);
}

void TcpDoor::DropSilent(int64_t now_ns) {
  std::erase_if(callers_,
                [&](const Caller& caller) { return now_ns - caller.since_ns > timeout_ns_; });
}

TcpDoor::Step TcpDoor::Hear(Caller& caller) {
  while (true) {
    const size_t wanted = caller.greeted ? sizeof(TcpProof) : sizeof(TcpHello);
    const ssize_t count =
        ReadSocket(caller.fd.get(), caller.read.data() + caller.bytes, wanted - caller.bytes);
    if (count < 0 && errno == EAGAIN) return Step::kWaits;
    if (count <= 0) return Step::kGoes;
    caller.bytes += static_cast<size_t>(count);
    if (caller.bytes < wanted) continue;
    caller.bytes = 0;
    if (!caller.greeted) {
      if (TakeHello(caller) == Step::kGoes) return Step::kGoes;
      continue;
    }
    TcpProof proof;
    std::memcpy(&proof, caller.read.data(), sizeof(proof));
    const bool right = CheckProof(identity_, caller.hello, caller.challenge, proof).ok();
    return right ? Step::kEnters : Step::kGoes;
  }
}

// A stranger is told nothing.
TcpDoor::Step TcpDoor::TakeHello(Caller& caller) {
  std::memcpy(&caller.hello, caller.read.data(), sizeof(caller.hello));
  if (!CheckHello(identity_, caller.hello).ok()) return Step::kGoes;
  const absl::StatusOr<TcpChallenge> challenge = MakeChallenge(identity_, caller.hello);
  if (!challenge.ok()) return Step::kGoes;
  caller.challenge = *challenge;
  caller.greeted = true;
  // A new connection has room for so little.
  const ssize_t sent = WriteSocket(caller.fd.get(), &*challenge, sizeof(*challenge));
  return sent == sizeof(*challenge) ? Step::kWaits : Step::kGoes;
}

}  // namespace sluice
