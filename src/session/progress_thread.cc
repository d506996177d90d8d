// The loop of the progress thread.
#include "session/progress_thread.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "base/clock.h"

namespace sluice {
namespace {

// A longer limit never ends. The end of a shorter one fits the clock.
constexpr absl::Duration kForEver = absl::Hours(24 * 365);

// Signals go to the caller's threads, which may have handlers that expect so.
void BlockSignals() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

}  // namespace

absl::Status ProgressThread::Start() {
  ended_ = false;
  try {
    thread_ = std::thread([this] { Run(); });
  } catch (const std::system_error& error) {
    ended_ = true;
    return absl::ResourceExhaustedError(absl::StrCat("starting a progress thread: ", error.what()));
  }
  pthread_setname_np(thread_.native_handle(), "sluice-progress");
  return absl::OkStatus();
}

bool ProgressThread::SleepUntilDone(RunId run, absl::Duration limit) {
  std::unique_lock<std::mutex> lock(told_mutex_);
  const auto is_over = [this, run] { return ended_ || session_->IsRunDone(run); };
  if (limit < kForEver) {
    const absl::Duration pause = std::max(limit, absl::ZeroDuration());
    return told_.wait_for(lock, absl::ToChronoNanoseconds(pause), is_over);
  }
  told_.wait(lock, is_over);
  return true;
}

void ProgressThread::Join() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard<FairLock> lock(*lock_);
    stopping_ = true;
  }
  session_->idle_wait()->Wake();
  thread_.join();
}

void ProgressThread::Run() {
  BlockSignals();
  while (Round()) continue;
  Tell(true);
}

bool ProgressThread::Round() {
  lock_->lock();
  if (stopping_ || session_->is_poisoned()) {
    const bool over = stopping_ || session_->Settle();
    lock_->unlock();
    if (!over) session_->idle_wait()->Pause(Awaited::kRanks);
    return !over;
  }
  const int64_t ends = session_->ends();
  const absl::StatusOr<bool> moved = session_->Advance();
  const bool run_ended = session_->ends() > ends;
  const Awaited awaited = session_->awaited();
  const int64_t due_ns = session_->next_due_ns();
  lock_->unlock();
  if (!moved.ok()) {
    Tell(false);
    return true;
  }
  if (run_ended) Tell(false);
  if (*moved) {
    session_->idle_wait()->Reset();
  } else {
    session_->idle_wait()->Pause(awaited, due_ns - MonotonicNs());
  }
  return true;
}

void ProgressThread::Tell(bool thread_ended) {
  {
    // A sleeper that has looked before is asleep by the time this is taken.
    const std::lock_guard<std::mutex> lock(told_mutex_);
    ended_ = ended_ || thread_ended;
  }
  told_.notify_all();
}

}  // namespace sluice
