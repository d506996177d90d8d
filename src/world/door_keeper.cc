// Waiting for a knock, and for those who may answer it first.
#include "world/door_keeper.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include "storage/own_thread.h"
#include "tensor/error_text.h"

namespace sluice {
namespace {

// True: `stop` is readable. `fd`, where it is not below 0, ends the waiting, too; so does the time.
bool IsStopped(int stop, int fd, int timeout_ms) {
  pollfd fds[] = {{stop, POLLIN, 0}, {fd, POLLIN, 0}};
  while (poll(fds, 2, timeout_ms) < 0 && errno == EINTR) continue;
  return fds[0].revents != 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<DoorKeeper>> DoorKeeper::Make(std::shared_ptr<TcpLinks> links,
                                                             absl::Duration idle) {
  Fd stop(eventfd(0, EFD_CLOEXEC));
  if (!stop.is_open()) {
    return absl::ResourceExhaustedError(absl::ErrnoToStatus(errno, "eventfd").message());
  }
  std::unique_ptr<DoorKeeper> keeper(new DoorKeeper(std::move(links), std::move(stop), idle));
  SLUICE_ASSIGN_OR_RETURN(keeper->thread_,
                          StartOwnThread([raw = keeper.get()] { raw->Run(); }, "sluice-door"));
  return keeper;
}

DoorKeeper::DoorKeeper(std::shared_ptr<TcpLinks> links, Fd stop, absl::Duration idle)
    : links_(std::move(links)),
      stop_(std::move(stop)),
      idle_ms_(static_cast<int>(std::max<int64_t>(1, absl::ToInt64Milliseconds(idle)))),
      process_(getpid()) {}

DoorKeeper::~DoorKeeper() {
  if (!thread_.joinable()) return;
  if (getpid() != process_) {
    // A child has no such thread, and what stands for it can be neither joined nor destroyed.
    static_cast<void>(new (std::nothrow) std::thread(std::move(thread_)));
    return;
  }
  static_cast<void>(eventfd_write(stop_.get(), 1));
  thread_.join();
}

void DoorKeeper::Run() {
  bool somebody_is_there = false;
  while (!IsStopped(stop_.get(), links_->door_fd(), somebody_is_there ? idle_ms_ : -1) &&
         !IsStopped(stop_.get(), -1, idle_ms_)) {
    somebody_is_there = links_->ServeDoor(absl::Milliseconds(idle_ms_));
  }
}

}  // namespace sluice
