// System calls on sockets.
#include "world/store/store_socket.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "absl/strings/str_cat.h"

namespace sluice {

absl::StatusOr<Fd> ListenAt(const SocketAddress& address) {
  constexpr int kBacklog = 1024;
  const auto failed = [&](const char* call) {
    const bool is_held = errno == EADDRINUSE;
    return absl::Status(is_held ? absl::StatusCode::kAlreadyExists : absl::StatusCode::kUnavailable,
                        absl::StrCat("a store cannot listen at ", address.Text(), ": ",
                                     absl::ErrnoToStatus(errno, call).message()));
  };
  Fd listener(socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!listener.is_open()) return failed("socket");
  // So that a store can be started anew right after its end.
  const int on = 1;
  setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  const int off = 0;
  if (address.storage.ss_family == AF_INET6) {
    setsockopt(listener.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
  }
  if (bind(listener.get(), address.get(), address.bytes) != 0) return failed("bind");
  if (listen(listener.get(), kBacklog) != 0) return failed("listen");
  return listener;
}

absl::StatusOr<SocketAddress> AddressOfSocket(int fd) {
  SocketAddress address;
  address.bytes = sizeof(address.storage);
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address.storage), &address.bytes) != 0) {
    return absl::ErrnoToStatus(errno, "getsockname");
  }
  return address;
}

bool CanBind(const SocketAddress& address) {
  const Fd fd(socket(address.get()->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  return fd.is_open() && bind(fd.get(), address.get(), address.bytes) == 0;
}

void SetConnectionOptions(int fd) {
  constexpr int kSystemBytes = 256 << 10;
  const auto set = [&](int level, int name, int value) {
    setsockopt(fd, level, name, &value, sizeof(value));
  };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 30);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 10);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
  set(SOL_SOCKET, SO_SNDBUF, kSystemBytes);
  set(SOL_SOCKET, SO_RCVBUF, kSystemBytes);
}

StoreIo ReadSome(int fd, std::string* bytes, size_t most) {
  std::array<char, size_t{64} << 10> room;
  ssize_t got = 0;
  do {
    got = recv(fd, room.data(), std::min(room.size(), most), 0);
  } while (got < 0 && errno == EINTR);
  if (got > 0) {
    bytes->append(room.data(), static_cast<size_t>(got));
    return {static_cast<size_t>(got), false};
  }
  return {0, got == 0 || (errno != EAGAIN && errno != EWOULDBLOCK)};
}

StoreIo WriteSome(int fd, absl::string_view bytes) {
  ssize_t sent = 0;
  do {
    sent = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  if (sent >= 0) return {static_cast<size_t>(sent), false};
  return {0, errno != EAGAIN && errno != EWOULDBLOCK};
}

}  // namespace sluice
