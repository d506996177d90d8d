// One rank's work that waits for a file system or a server, on a thread of its own. The session's
// thread goes on: it drives streams, and tells the other ranks that this one lives.
#ifndef SLUICE_SRC_SESSION_BASE_OWN_WORK_H_
#define SLUICE_SRC_SESSION_BASE_OWN_WORK_H_

#include <atomic>
#include <functional>
#include <memory>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace sluice {

// A flag that the work looks at from time to time: true once nobody needs the work any more. The
// work may then end early with any error. Its calls of the system go on to their end.
using WorkStop = std::atomic<bool>;
using OwnWorkFunction = std::function<absl::Status(const WorkStop& stop)>;

// Thread: one, which the work does not run on.
class OwnWork {
 public:
  // Starts `work`. `wake` is called by the work's thread at its end, and must outlive this object.
  // ResourceExhausted: the system has no thread for it; then nothing runs.
  static absl::StatusOr<std::unique_ptr<OwnWork>> Start(OwnWorkFunction work,
                                                        std::function<void()> wake);

  OwnWork(const OwnWork&) = delete;
  OwnWork& operator=(const OwnWork&) = delete;
  // Tells the work to stop, and waits for its end.
  ~OwnWork();

  bool ended() const { return ended_.load(std::memory_order_acquire); }
  // Once ended() is true.
  const absl::Status& outcome() const { return outcome_; }
  void Stop() { stop_.store(true, std::memory_order_relaxed); }

 private:
  OwnWork() = default;

  WorkStop stop_ = false;
  std::atomic<bool> ended_ = false;
  absl::Status outcome_;
  std::thread thread_;
};

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_BASE_OWN_WORK_H_
