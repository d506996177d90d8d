// The thread that drives a session while its caller is busy. It polls; what is to be done, the
// session knows.
#ifndef SLUICE_SRC_SESSION_PROGRESS_THREAD_H_
#define SLUICE_SRC_SESSION_PROGRESS_THREAD_H_

#include <condition_variable>
#include <mutex>
#include <thread>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/fair_lock.h"
#include "session/base/run_id.h"
#include "session/session_impl.h"

namespace sluice {

// It polls while something is in flight, holding the lock for one round at a time and never while
// it pauses. Otherwise it sleeps, and looks now and then whether another rank has failed, or asks.
// It ends by itself once the session is poisoned and has parted from the other ranks.
class ProgressThread {
 public:
  // Both must outlive the thread. From Start to Join `session` is used under `lock` only, but for
  // what any thread may call.
  ProgressThread(SessionImpl* session, FairLock* lock) : session_(session), lock_(lock) {}
  ~ProgressThread() { Join(); }
  ProgressThread(const ProgressThread&) = delete;
  ProgressThread& operator=(const ProgressThread&) = delete;

  // ResourceExhausted if the system has no thread left.
  absl::Status Start();

  // Sleeps until the run is done or the thread has ended. False if neither has come within `limit`.
  // Without the lock.
  bool SleepUntilDone(RunId run, absl::Duration limit);

  // Has the thread end, and waits for it. Without the lock.
  void Join();

 private:
  void Run();
  // One round; false if it was the last one.
  bool Round();
  void Tell(bool thread_ended);

  SessionImpl* const session_;
  FairLock* const lock_;
  bool stopping_ = false;  // guarded by lock_

  std::mutex told_mutex_;
  std::condition_variable told_;
  bool ended_ = true;  // guarded by told_mutex_

  std::thread thread_;
};

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_PROGRESS_THREAD_H_
