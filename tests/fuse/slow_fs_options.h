// The flags of slow_fs.
#ifndef SLUICE_TESTS_FUSE_SLOW_FS_OPTIONS_H_
#define SLUICE_TESTS_FUSE_SLOW_FS_OPTIONS_H_

#include <string>

#include "absl/status/statusor.h"
#include "fuse/slow_fs_parts.h"

namespace sluice::fuse {

struct SlowFsOptions {
  std::string source;          // a directory, shown read-only
  std::string mount;           // where; an empty directory
  FatePlan fate;               // of reads
  double meta_latency_ms = 0;  // of look-ups, attributes and opens
  int hold = 0;                // the first n reads end only once all n have come
  bool cached = false;         // through the page cache; otherwise every read comes here
  int threads = 4;             // that copy
  std::string log_file;        // counts, as JSON; rewritten on SIGUSR1 and at the end
  int ready_fd = -1;           // where to write 'm' once mounted, 'r' after each report
  int parent = 0;              // unmount when the thread of this process that started this ends
};

// How it says why it has not mounted anything.
inline constexpr int kSlowFsBadFlags = 2;
inline constexpr int kSlowFsCannotMount = 3;  // the system does not let it

// InvalidArgument names the flag; an empty message asks for nothing more than what was printed.
absl::StatusOr<SlowFsOptions> ParseSlowFsOptions(int argc, char** argv);

}  // namespace sluice::fuse

#endif  // SLUICE_TESTS_FUSE_SLOW_FS_OPTIONS_H_
