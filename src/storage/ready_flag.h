// A descriptor that polls readable while a flag is set: the ready_fd of sources that have no other.
#ifndef SLUICE_SRC_STORAGE_READY_FLAG_H_
#define SLUICE_SRC_STORAGE_READY_FLAG_H_

#include <sys/eventfd.h>

#include <cerrno>
#include <utility>

#include "absl/status/statusor.h"
#include "net/fd.h"
#include "storage/source_check.h"

namespace sluice {

// Thread: one at a time.
class ReadyFlag {
 public:
  static absl::StatusOr<ReadyFlag> Make() {
    Fd fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (fd.get() < 0) return ReadErrnoStatus(errno, "eventfd");
    return ReadyFlag(std::move(fd));
  }

  int fd() const { return fd_.get(); }
  // A system call only if that changes something.
  void Set(bool ready) {
    if (std::exchange(ready_, ready) == ready) return;
    eventfd_t value = 1;
    if (ready) {
      eventfd_write(fd_.get(), value);
    } else {
      eventfd_read(fd_.get(), &value);
    }
  }

 private:
  explicit ReadyFlag(Fd fd) : fd_(std::move(fd)) {}

  Fd fd_;
  bool ready_ = false;
};

}  // namespace sluice

#endif  // SLUICE_SRC_STORAGE_READY_FLAG_H_
