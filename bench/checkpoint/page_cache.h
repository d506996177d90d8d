// Putting files out of the page cache, so that the next read comes from storage.
#ifndef SLUICE_BENCH_CHECKPOINT_PAGE_CACHE_H_
#define SLUICE_BENCH_CHECKPOINT_PAGE_CACHE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace sluice::bench {

// Takes no rights but to read the files. Nobody may have them mapped. FailedPrecondition if more
// than a hundredth of a file stays; the system tells that of files only that this process may write
// to. What a storage server, a disk or a hypervisor caches stays.
absl::Status DropFromPageCache(const std::vector<std::string>& paths);

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_CHECKPOINT_PAGE_CACHE_H_
