// Which process a rank is, as other processes of its node can tell: also when its number has gone
// to another one.
#ifndef SLUICE_SRC_TRANSPORT_PROCESS_NAME_H_
#define SLUICE_SRC_TRANSPORT_PROCESS_NAME_H_

#include <array>
#include <cstdint>

#include "net/fd.h"

namespace sluice {

// Trivially copyable: ranks send it to each other.
struct ProcessName {
  std::array<char, 40> boot = {};  // the running system's id, zero-terminated; empty: unknown
  uint64_t pid_namespace = 0;      // in which `pid` is a number; 0: unknown
  uint64_t start_ticks = 0;        // when the process began, by the system's clock; 0: unknown
  int32_t pid = -1;
};

ProcessName OwnProcessName();

// True if both can be processes of one running system that see each other by their numbers.
bool SeeEachOther(const ProcessName& a, const ProcessName& b);

// Holds on to another process, so that its end can be told from a successor with its number.
// Thread: one at a time.
class ProcessHandle {
 public:
  // How to look at it. kProc is for systems that lack pidfd_open, or forbid it.
  enum class Way { kAny, kProc };

  // A process that this one sees by its number.
  explicit ProcessHandle(const ProcessName& name, Way way = Way::kAny);

  int32_t pid() const { return pid_; }
  // True once the process has ended, also while its parent has not taken note of the end. Asks the
  // system. Always false where the process cannot be looked at.
  bool HasEnded() const;
  // Readable once the process has ended; -1: there is no such descriptor.
  int exit_fd() const { return exit_fd_.get(); }
  // Why there is none, if it has not ended and Way allowed one: an errno, or 0.
  int pidfd_error() const { return pidfd_error_; }
  // False: nothing will ever be known of its end.
  bool can_look() const { return is_own_ || ended_ || exit_fd_.is_open() || proc_fd_.is_open(); }

 private:
  int32_t pid_;
  bool is_own_;
  bool ended_ = false;
  Fd exit_fd_;  // a pidfd
  int pidfd_error_ = 0;
  Fd proc_fd_;  // its directory in /proc, which goes with it
};

}  // namespace sluice

#endif  // SLUICE_SRC_TRANSPORT_PROCESS_NAME_H_
