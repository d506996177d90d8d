// A file descriptor that is closed with its owner.
#ifndef SLUICE_SRC_STORAGE_UNIQUE_FD_H_
#define SLUICE_SRC_STORAGE_UNIQUE_FD_H_

#include <unistd.h>

#include <utility>

namespace sluice {

class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}  // below 0: none
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~UniqueFd() {
    if (fd_ >= 0) close(fd_);
  }

  int get() const { return fd_; }

 private:
  int fd_ = -1;
};

}  // namespace sluice

#endif  // SLUICE_SRC_STORAGE_UNIQUE_FD_H_
