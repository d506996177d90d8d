// Descriptors that are closed with their owner, and in children that are forked.
#ifndef SLUICE_SRC_NET_FD_H_
#define SLUICE_SRC_NET_FD_H_

#include <cstdint>
#include <utility>

namespace sluice {

// How many forks this process comes from since the first call.
uint32_t ForkCount();

// A descriptor. A child that is forked closes its copy at once, and its Fd holds none there.
// Otherwise a connection or a lock would outlive the process that made it, and others would take
// that one to be alive.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd);  // below 0: none
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)), forks_(other.forks_) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    std::swap(forks_, other.forks_);
    return *this;
  }
  ~Fd() { Close(); }

  int get() const { return fd_ >= 0 && forks_ == ForkCount() ? fd_ : -1; }
  bool is_open() const { return get() >= 0; }
  // Leaves errno alone. A socket's connection ends, whoever else has a copy of it: a child may,
  // that was forked just now.
  void Close();

 private:
  int fd_ = -1;
  uint32_t forks_ = 0;
};

}  // namespace sluice

#endif  // SLUICE_SRC_NET_FD_H_
