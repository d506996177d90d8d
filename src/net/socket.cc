// Calls of the system that make TCP sockets.
#include "net/socket.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace sluice {
namespace {

// Ranks of a large world may all come at once.
constexpr int kBacklog = 4096;

void SetOption(int fd, int level, int name, int value) {
  // What the system does not know makes a connection slower, not wrong.
  static_cast<void>(setsockopt(fd, level, name, &value, sizeof(value)));
}

absl::Status SocketError(const char* call, const std::string& where, int error) {
  return absl::UnavailableError(absl::StrCat(call, " at ", where, ": ", ErrnoText(error)));
}

absl::StatusOr<Fd> ListenAt(const TcpAddress& address, int port) {
  const int family = address.get()->sa_family;
  Fd fd(socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const std::string where = TcpAddressText(address);
  if (!fd.is_open()) return SocketError("socket", where, errno);
  // After a restart, connections of before may still hold a port that was asked for. Two sockets
  // that get any free port may with this option get the same one, and then one cannot listen.
  if (port != 0) SetOption(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  if (family == AF_INET6) SetOption(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, 0);
  if (bind(fd.get(), address.get(), address.length) != 0) return SocketError("bind", where, errno);
  if (listen(fd.get(), kBacklog) != 0) return SocketError("listen", where, errno);
  return fd;
}

int PortOf(int fd) {
  TcpAddress address;
  address.length = sizeof(address.storage);
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address.storage), &address.length) != 0)
    return 0;
  // The port lies at the same place in both kinds.
  return ntohs(reinterpret_cast<const sockaddr_in*>(&address.storage)->sin_port);
}

std::string JoinAddresses(const std::vector<std::string>& hosts, int port) {
  std::vector<std::string> texts;
  for (const std::string& host : hosts) {
    const absl::StatusOr<TcpAddress> address = MakeTcpAddress(host, port);
    if (address.ok()) texts.push_back(TcpAddressText(*address));
  }
  return absl::StrJoin(texts, ",");
}

}  // namespace

absl::StatusOr<TcpListener> ListenTcp(const std::string& bind, int port, const std::string& first) {
  if (!bind.empty()) {
    absl::StatusOr<TcpAddress> address = MakeTcpAddress(bind, port);
    if (!address.ok()) return address.status();
    absl::StatusOr<Fd> fd = ListenAt(*address, port);
    if (!fd.ok()) return fd.status();
    const int bound = PortOf(fd->get());
    return TcpListener{*std::move(fd), JoinAddresses({bind}, bound)};
  }
  bool with_ipv6 = true;
  absl::StatusOr<Fd> fd = ListenAt(*MakeTcpAddress("::", port), port);
  if (!fd.ok()) {  // a host without IPv6
    with_ipv6 = false;
    fd = ListenAt(*MakeTcpAddress("0.0.0.0", port), port);
  }
  if (!fd.ok()) return fd.status();
  const int bound = PortOf(fd->get());
  const std::vector<std::string> hosts = HostAddresses(with_ipv6, first);
  if (hosts.size() > kMaxTcpAddresses) {
    return absl::InvalidArgumentError(
        absl::StrCat("this host has ", hosts.size(), " addresses, more than ", kMaxTcpAddresses,
                     ": name the one at which others reach it, by SLUICE_BIND"));
  }
  return TcpListener{*std::move(fd), JoinAddresses(hosts, bound)};
}

absl::StatusOr<Fd> ConnectTcp(const TcpAddress& address) {
  const std::string where = TcpAddressText(address);
  Fd fd(socket(address.get()->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.is_open()) return SocketError("socket", where, errno);
  if (connect(fd.get(), address.get(), address.length) != 0 && errno != EINPROGRESS) {
    return SocketError("connect", where, errno);
  }
  return fd;
}

int ConnectOutcome(int fd) {
  pollfd ready = {fd, POLLOUT, 0};
  if (poll(&ready, 1, 0) <= 0) return EINPROGRESS;
  int error = 0;
  socklen_t length = sizeof(error);
  if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) != 0) return errno;
  return error;
}

void PrepareTcp(int fd, absl::Duration silence) {
  const int seconds = static_cast<int>(std::clamp<int64_t>(absl::ToInt64Seconds(silence), 6, 7200));
  SetOption(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  SetOption(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  SetOption(fd, IPPROTO_TCP, TCP_KEEPIDLE, seconds / 2);
  SetOption(fd, IPPROTO_TCP, TCP_KEEPINTVL, seconds / 6);
  SetOption(fd, IPPROTO_TCP, TCP_KEEPCNT, 3);
}

bool IsSilent(int fd, absl::Duration silence) {
  constexpr int kUnanswered = 3;
  tcp_info info = {};
  socklen_t length = sizeof(info);
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) return false;
  // A host whose process does not read answers probes. TCP_USER_TIMEOUT would not look at that.
  if (info.tcpi_retransmits < kUnanswered && info.tcpi_probes < kUnanswered) return false;
  return absl::Milliseconds(info.tcpi_last_ack_recv) > silence;
}

ssize_t ReadTcp(int fd, void* data, size_t bytes) {
  ssize_t count;
  do {
    count = recv(fd, data, bytes, MSG_DONTWAIT);
  } while (count < 0 && errno == EINTR);
  return count;
}

ssize_t WriteTcp(int fd, const void* data, size_t bytes) {
  ssize_t count;
  do {
    count = send(fd, data, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
  } while (count < 0 && errno == EINTR);
  return count;
}

std::string ErrnoText(int error) { return std::generic_category().message(error); }

}  // namespace sluice
