// Copies between this process's memory and another one's, by the kernel, in one copy.
#ifndef SLUICE_SRC_TRANSPORT_DIRECT_PROCESS_MEMORY_H_
#define SLUICE_SRC_TRANSPORT_DIRECT_PROCESS_MEMORY_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include "transport/direct/direct_place.h"

namespace sluice {

// Bytes [begin, end) of rows that begin at `remote` in process `pid` and at `local` in this one.
// Returns 0, or the kernel's error number: then any of these bytes may have been copied. ESRCH: the
// process is gone; EPERM: this one may not trace it; EFAULT: there is no such memory.
// Thread: any.
int ReadProcessMemory(pid_t pid, uint64_t remote, const DirectRows& remote_rows, std::byte* local,
                      const DirectRows& local_rows, uint64_t begin, uint64_t end);
int WriteProcessMemory(pid_t pid, uint64_t remote, const DirectRows& remote_rows,
                       const std::byte* local, const DirectRows& local_rows, uint64_t begin,
                       uint64_t end);

}  // namespace sluice

#endif  // SLUICE_SRC_TRANSPORT_DIRECT_PROCESS_MEMORY_H_
