// Says at once which rank of this host has ended, whatever this one is busy with.
#ifndef SLUICE_BENCH_JOB_RANK_WATCH_H_
#define SLUICE_BENCH_JOB_RANK_WATCH_H_

#include <memory>
#include <thread>

#include "transport/rank_processes.h"

namespace sluice::bench {

// A thread that sleeps until a process ends. It prints a line, and leaves the end of the run to
// whoever waits for the ranks: filling and checking memory go on for seconds without a wait.
class RankWatch {
 public:
  // `processes` is used by the thread alone.
  RankWatch(int rank, std::unique_ptr<RankProcesses> processes);
  ~RankWatch();
  RankWatch(const RankWatch&) = delete;
  RankWatch& operator=(const RankWatch&) = delete;

 private:
  void Run();

  const int rank_;
  const std::unique_ptr<RankProcesses> processes_;
  const int stop_fd_;  // an eventfd
  std::thread thread_;
};

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_JOB_RANK_WATCH_H_
