// How far a run has come: a bar on standard error, or lines where that is no terminal.
#ifndef SLUICE_BENCH_REPORT_PROGRESS_BAR_H_
#define SLUICE_BENCH_REPORT_PROGRESS_BAR_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "report/progress_line.h"

namespace sluice::bench {

// A thread of its own draws, so that the bar goes on while the run is busy. Of the run's calls only
// one at a time.
class ProgressBar {
 public:
  // `shown`: if this rank is the one to show it. Without a thread to be had nothing is shown.
  explicit ProgressBar(bool shown);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // What follows is `total` of `unit`, "items"; `label` says of what: "threads:8x4, round 2 of 9".
  void Begin(const std::string& label, int64_t total, const char* unit);
  void Advance(int64_t done, int64_t bytes_done = 0) {
    done_.store(done, std::memory_order_relaxed);
    bytes_.store(bytes_done, std::memory_order_relaxed);
  }
  // Reads `total` and `done` from now on, in bytes. Both must outlive the next Clear.
  void Follow(const std::atomic<int64_t>* total, const std::atomic<int64_t>* done);
  // Wipes the bar; nothing is drawn before the next Begin.
  void Clear();

 private:
  void Run();
  std::string Text() const;

  std::atomic<int64_t> done_{0};
  std::atomic<int64_t> bytes_{0};
  std::mutex mutex_;  // of what follows
  std::condition_variable wake_;
  bool ends_ = false;
  std::string label_;
  const char* unit_ = "";
  int64_t total_ = 0;
  const std::atomic<int64_t>* followed_total_ = nullptr;
  const std::atomic<int64_t>* followed_done_ = nullptr;
  std::optional<ProgressLine> line_;
  std::thread thread_;
};

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_REPORT_PROGRESS_BAR_H_
