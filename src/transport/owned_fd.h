// Descriptors of sockets: closed with their owner, and in children that are forked.
#ifndef SLUICE_SRC_TRANSPORT_OWNED_FD_H_
#define SLUICE_SRC_TRANSPORT_OWNED_FD_H_

#include <cstdint>
#include <utility>

namespace sluice {

// How many forks this process comes from since the first call.
uint32_t ForkCount();

// A descriptor. A child that is forked closes its copy at once, and its OwnedFd holds none there.
// Otherwise a connection would outlive the process that made it, and others would take that one to
// be alive.
class OwnedFd {
 public:
  explicit OwnedFd(int fd = -1);  // below 0: none
  OwnedFd(OwnedFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)), forks_(other.forks_) {}
  OwnedFd& operator=(OwnedFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    std::swap(forks_, other.forks_);
    return *this;
  }
  ~OwnedFd() { Close(); }

  int get() const { return fd_ >= 0 && forks_ == ForkCount() ? fd_ : -1; }
  bool is_open() const { return get() >= 0; }
  void Close();

 private:
  int fd_;
  uint32_t forks_;
};

}  // namespace sluice

#endif  // SLUICE_SRC_TRANSPORT_OWNED_FD_H_
