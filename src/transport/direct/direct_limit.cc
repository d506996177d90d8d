// Names the limit that forbids copies, as far as errors and the system's settings tell.
#include "transport/direct/direct_limit.h"

#include <fstream>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace sluice {
namespace {

// From this scope on a process cannot allow it to others; from the next one on nobody can.
constexpr int32_t kScopeOfAdministrators = 2;

}  // namespace

absl::string_view RemedyOf(const DirectLimit& limit) {
  if (limit.yama_scope > kScopeOfAdministrators) {
    return "kernel.yama.ptrace_scope is 3 there, which only a restart with another setting changes";
  }
  if (limit.yama_scope == kScopeOfAdministrators) {
    return "kernel.yama.ptrace_scope is 2 there: `sysctl kernel.yama.ptrace_scope=1` allows it";
  }
  return "It takes one user for both, and a seccomp filter that allows process_vm_readv and "
         "process_vm_writev (in containers of Docker: --cap-add=SYS_PTRACE)";
}

int32_t YamaScope() {
  std::ifstream file("/proc/sys/kernel/yama/ptrace_scope");
  int32_t scope = -1;
  return file >> scope ? scope : -1;
}

std::string DescribeLimit(const DirectLimit& limit) {
  const absl::Status status = absl::ErrnoToStatus(
      limit.error,
      absl::StrCat("the kernel does not let rank ", limit.rank, ", process ", limit.pid,
                   ", copy to and from memory of rank ", limit.peer, ", process ", limit.peer_pid));
  return absl::StrCat(status.message(), ". ", RemedyOf(limit));
}

}  // namespace sluice
