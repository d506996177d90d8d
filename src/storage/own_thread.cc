// Threads with all signals blocked.
#include "storage/own_thread.h"

#include <pthread.h>
#include <signal.h>

#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"

namespace sluice {

absl::StatusOr<std::thread> StartOwnThread(std::function<void()> work, const char* name) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread;
  absl::Status status;
  try {
    thread = std::thread(std::move(work));
    if (name != nullptr) pthread_setname_np(thread.native_handle(), name);
  } catch (const std::system_error& error) {
    status = absl::ResourceExhaustedError(absl::StrCat("no thread: ", error.what()));
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (!status.ok()) return status;
  return thread;
}

}  // namespace sluice
