// Makes sockets, and reads and writes without waiting.
#include "net/socket.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"

namespace sluice {
namespace {

Fd MakeSocket(const SocketAddress& address, const char** call) {
  *call = "socket";
  return Fd(socket(address.get()->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

}  // namespace

Fd ListenAt(const SocketAddress& address, int backlog, bool again, const char** call) {
  Fd fd = MakeSocket(address, call);
  if (!fd.is_open()) return fd;
  if (again) SetSocketOption(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  if (address.get()->sa_family == AF_INET6) {
    SetSocketOption(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, 0);
  }
  *call = "bind";
  if (bind(fd.get(), address.get(), address.length) != 0) return Fd();
  *call = "listen";
  return listen(fd.get(), backlog) == 0 ? std::move(fd) : Fd();
}

Fd ConnectTo(const SocketAddress& address, const char** call) {
  Fd fd = MakeSocket(address, call);
  if (!fd.is_open()) return fd;
  *call = "connect";
  const bool begun = connect(fd.get(), address.get(), address.length) == 0 || errno == EINPROGRESS;
  return begun ? std::move(fd) : Fd();
}

int ConnectOutcome(int fd) {
  pollfd ready = {fd, POLLOUT, 0};
  if (poll(&ready, 1, 0) <= 0) return EINPROGRESS;
  int error = 0;
  socklen_t length = sizeof(error);
  if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) != 0) return errno;
  return error;
}

SocketAddress AddressOfSocket(int fd) {
  SocketAddress address;
  address.length = sizeof(address.storage);
  auto* const own = reinterpret_cast<sockaddr*>(&address.storage);
  return getsockname(fd, own, &address.length) == 0 ? address : SocketAddress();
}

bool CanBind(const SocketAddress& address) {
  const Fd fd(socket(address.get()->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  return fd.is_open() && bind(fd.get(), address.get(), address.length) == 0;
}

void PrepareConnection(int fd, absl::Duration silence) {
  const int seconds = static_cast<int>(std::clamp<int64_t>(absl::ToInt64Seconds(silence), 6, 7200));
  SetSocketOption(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  SetSocketOption(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  SetSocketOption(fd, IPPROTO_TCP, TCP_KEEPIDLE, seconds / 2);
  SetSocketOption(fd, IPPROTO_TCP, TCP_KEEPINTVL, seconds / 6);
  SetSocketOption(fd, IPPROTO_TCP, TCP_KEEPCNT, 3);
}

void SetSocketOption(int fd, int level, int name, int value) {
  // An option that the system does not know makes a connection slower, not wrong.
  static_cast<void>(setsockopt(fd, level, name, &value, sizeof(value)));
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

ssize_t ReadSocket(int fd, void* data, size_t bytes) {
  ssize_t count;
  do {
    count = recv(fd, data, bytes, MSG_DONTWAIT);
  } while (count < 0 && errno == EINTR);
  return count;
}

ssize_t WriteSocket(int fd, const void* data, size_t bytes) {
  ssize_t count;
  do {
    count = send(fd, data, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
  } while (count < 0 && errno == EINTR);
  return count;
}

SocketIo ReadSome(int fd, std::string* bytes, size_t most) {
  std::array<char, size_t{64} << 10> room;
  const ssize_t got = ReadSocket(fd, room.data(), std::min(room.size(), most));
  if (got <= 0) return {0, got == 0 || errno != EAGAIN};
  bytes->append(room.data(), static_cast<size_t>(got));
  return {static_cast<size_t>(got), false};
}

SocketIo WriteSome(int fd, absl::string_view bytes) {
  const ssize_t sent = WriteSocket(fd, bytes.data(), bytes.size());
  if (sent < 0) return {0, errno != EAGAIN};
  return {static_cast<size_t>(sent), false};
}

std::string ErrnoText(int error) { return std::generic_category().message(error); }

std::string SocketErrorText(const char* call, const SocketAddress& address, int error) {
  return absl::StrCat(call, " at ", address.Text(), ": ", ErrnoText(error));
}

}  // namespace sluice
