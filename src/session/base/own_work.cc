// The thread of one rank's own work.
#include "session/base/own_work.h"

#include <utility>

#include "storage/own_thread.h"

namespace sluice {

absl::StatusOr<std::unique_ptr<OwnWork>> OwnWork::Start(OwnWorkFunction work,
                                                        std::function<void()> wake) {
  std::unique_ptr<OwnWork> own(new OwnWork);
  OwnWork* const self = own.get();
  absl::StatusOr<std::thread> thread =
      StartOwnThread([self, work = std::move(work), wake = std::move(wake)] {
        self->outcome_ = work(self->stop_);
        self->ended_.store(true, std::memory_order_release);
        wake();
      });
  if (!thread.ok()) return thread.status();
  own->thread_ = *std::move(thread);
  return own;
}

OwnWork::~OwnWork() {
  Stop();
  if (thread_.joinable()) thread_.join();
}

}  // namespace sluice
