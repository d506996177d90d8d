// System calls on sockets, and what a forked child does with them.
#include "world/store/store_socket.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>

#include "absl/strings/str_cat.h"

namespace sluice {
namespace {

// One bit for each descriptor that is a store's. A child may read it, whatever other threads did
// while it was forked. Descriptors beyond stay open in children.
constexpr int kGuardedFds = 1 << 16;
constexpr int kBitsPerWord = 64;
std::array<std::atomic<uint64_t>, kGuardedFds / kBitsPerWord> guarded_fds;

void CloseGuardedFds() {
  for (int word = 0; word < kGuardedFds / kBitsPerWord; ++word) {
    uint64_t bits = guarded_fds[static_cast<size_t>(word)].exchange(0);
    for (; bits != 0; bits &= bits - 1) close(word * kBitsPerWord + __builtin_ctzll(bits));
  }
}

void GuardFd(int fd, bool guarded) {
  static const int registered = pthread_atfork(nullptr, nullptr, &CloseGuardedFds);
  static_cast<void>(registered);
  if (fd >= kGuardedFds) return;
  std::atomic<uint64_t>& word = guarded_fds[static_cast<size_t>(fd / kBitsPerWord)];
  const uint64_t bit = uint64_t{1} << (fd % kBitsPerWord);
  if (guarded) {
    word.fetch_or(bit);
  } else {
    word.fetch_and(~bit);
  }
}

}  // namespace

StoreSocket::StoreSocket(int fd) : fd_(fd) {
  if (fd_ >= 0) GuardFd(fd_, true);
}

void StoreSocket::Close() {
  if (fd_ < 0) return;
  // A child that was forked just now may still have a copy.
  shutdown(fd_, SHUT_RDWR);
  GuardFd(fd_, false);
  close(fd_);
  fd_ = -1;
}

absl::StatusOr<StoreSocket> ListenAt(const SocketAddress& address) {
  constexpr int kBacklog = 1024;
  const auto failed = [&](const char* call) {
    return absl::UnavailableError(absl::StrCat("a store cannot listen at ", address.Text(), ": ",
                                               absl::ErrnoToStatus(errno, call).message()));
  };
  StoreSocket listener(
      socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!listener) return failed("socket");
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
