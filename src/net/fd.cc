// Keeps track of owned descriptors, and closes them in a forked child.
#include "net/fd.h"

#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>

namespace sluice {
namespace {

// One bit for each descriptor that is owned. A child may read it, whatever other threads did while
// it was forked. Descriptors beyond stay open in children.
constexpr int kGuardedFds = 1 << 16;
constexpr int kBitsPerWord = 64;
std::array<std::atomic<uint64_t>, kGuardedFds / kBitsPerWord> guarded_fds;
std::atomic<uint32_t> fork_count;

void CloseGuardedFds() {
  fork_count.fetch_add(1, std::memory_order_relaxed);
  for (int word = 0; word < kGuardedFds / kBitsPerWord; ++word) {
    uint64_t bits = guarded_fds[static_cast<size_t>(word)].exchange(0);
    for (; bits != 0; bits &= bits - 1) close(word * kBitsPerWord + __builtin_ctzll(bits));
  }
}

void GuardFd(int fd, bool guarded) {
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

uint32_t ForkCount() {
  static const int registered = pthread_atfork(nullptr, nullptr, &CloseGuardedFds);
  static_cast<void>(registered);
  return fork_count.load(std::memory_order_relaxed);
}

Fd::Fd(int fd) : fd_(fd), forks_(ForkCount()) {
  if (fd_ >= 0) GuardFd(fd_, true);
}

void Fd::Close() {
  if (is_open()) {
    const int error = errno;
    GuardFd(fd_, false);
    shutdown(fd_, SHUT_RDWR);  // which other descriptors refuse
    close(fd_);
    errno = error;
  }
  fd_ = -1;
}

}  // namespace sluice
