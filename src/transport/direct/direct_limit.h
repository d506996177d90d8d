// Explains in words what the kernel keeps a rank from, and what may be done about it.
#ifndef SLUICE_SRC_TRANSPORT_DIRECT_DIRECT_LIMIT_H_
#define SLUICE_SRC_TRANSPORT_DIRECT_DIRECT_LIMIT_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace sluice {

// A rank that the kernel does not let copy to and from memory of another one, unless that memory is
// mapped. Trivially copyable: ranks send it to each other.
struct DirectLimit {
  int32_t rank = -1;  // -1: there is no such limit
  int32_t pid = -1;
  int32_t peer = -1;
  int32_t peer_pid = -1;
  int32_t error = 0;        // an errno
  int32_t yama_scope = -1;  // kernel.yama.ptrace_scope where the rank runs; -1: there is none
};

// kernel.yama.ptrace_scope, or -1.
int32_t YamaScope();
// From this scope on a process cannot allow copies to others.
inline constexpr int32_t kYamaOfAdministrators = 2;

// One sentence or two, without a period at the end.
std::string DescribeLimit(const DirectLimit& limit);
// The last sentence of the description: a remedy.
absl::string_view RemedyOf(const DirectLimit& limit);

}  // namespace sluice

#endif  // SLUICE_SRC_TRANSPORT_DIRECT_DIRECT_LIMIT_H_
