// The processes of the other ranks of this node: which of them have ended.
#ifndef SLUICE_SRC_TRANSPORT_RANK_PROCESSES_H_
#define SLUICE_SRC_TRANSPORT_RANK_PROCESSES_H_

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "net/fd.h"
#include "tensor/error_text.h"
#include "transport/process_name.h"

namespace sluice {

// Thread: any; a stream that its consumer's thread closes asks as its session does.
class RankProcesses {
 public:
  // `names` and `nodes` of all ranks. Looks at the ranks on the node of `rank` that this process
  // sees.
  RankProcesses(int rank, absl::Span<const ProcessName> names, absl::Span<const int> nodes);
  RankProcesses(const RankProcesses&) = delete;
  RankProcesses& operator=(const RankProcesses&) = delete;

  // Nobody is looked at.
  bool empty() const { return processes_.empty(); }
  // OK, or Unavailable, which names the ranks that have ended. Unavailable comes some time after
  // their end, so that what they said before may come first. It comes from then on. Looks every
  // kLookNs, with one call of the system, so it may be called whenever something is polled.
  absl::Status Check();
  // Readable once a process has ended that has not been looked at since. If -1, there is no such
  // descriptor for all of them, and only Check finds out.
  int exit_fd() const { return unwatched_.empty() ? epoll_fd_.get() : -1; }
  // Tells what keeps this rank from noticing the end of others, or from being told of the end;
  // empty: nothing.
  std::string Limit() const;
  // As of the last Check that has looked, and as late.
  bool HasEnded(int rank) const;
  // Whether that rank's process has ended, as far as the system tells at once: before Check says
  // so. For those who are about to send to it. Looks every kGoneLookNs, with one call of the
  // system.
  bool IsGone(int rank);
  // Adds to the text of an error that the process `pid` of that rank has ended.
  static void AddEnd(int rank, int pid, ErrorText* text);
  // Whether that rank's process is looked at.
  bool Sees(int rank) const;

 private:
  static constexpr int64_t kLookNs = 10'000'000;
  static constexpr int64_t kGoneLookNs = 20'000;
  static constexpr int64_t kLastWordsNs = 100'000'000;

  struct Process {
    int rank;
    ProcessHandle handle;
    int64_t ended_ns = 0;  // when that was first seen; 0: it has not ended
  };

  void Look(int64_t now_ns);
  void LookAtWatched(int64_t now_ns);
  void See(Process* process, int64_t now_ns);
  void TakeEnds(int64_t now_ns);

  const int rank_;
  mutable std::mutex mutex_;
  std::vector<Process> processes_;
  std::vector<size_t> unwatched_;  // of processes_: not in the epoll set
  const Fd epoll_fd_;
  std::vector<uint8_t> ended_;  // by rank
  std::vector<uint8_t> gone_;   // by rank: its end has been seen
  size_t seen_ = 0;             // processes whose end has been seen
  size_t told_ = 0;             // of those, counted in status_
  int64_t looked_ns_ = 0;
  int64_t gone_looked_ns_ = 0;
  absl::Status status_;
};

}  // namespace sluice

#endif  // SLUICE_SRC_TRANSPORT_RANK_PROCESSES_H_
