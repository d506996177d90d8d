// A mounted slow_fs, for the time of a test.
#ifndef SLUICE_TESTS_FUSE_SLOW_FS_MOUNT_H_
#define SLUICE_TESTS_FUSE_SLOW_FS_MOUNT_H_

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace sluice::fuse {

// What the file system itself has counted.
struct SlowFsReport {
  struct Object {
    int64_t opens = 0;
    int64_t reads = 0;  // requests of the kernel, each at most 1 MiB
    int64_t bytes = 0;  // handed out
    int64_t errors = 0;
  };
  int64_t in_flight = 0;                  // reads
  int64_t in_flight_max = 0;              // at once
  std::map<std::string, Object> objects;  // that were opened, by path
  Object total;
};

// Runs slow_fs as a child process, on a folder of its own. Thread: one. The thread that makes it
// must live as long as it does, or the child ends before.
class SlowFsMount {
 public:
  // Shows `source`; `flags` are slow_fs's, such as "--latency-ms=20". Unavailable where the system
  // does not let it (no libfuse3, no /dev/fuse, mounting refused): a reason to skip a test. Any
  // other error is a failure.
  static absl::StatusOr<std::unique_ptr<SlowFsMount>> Create(const std::string& source,
                                                             const std::vector<std::string>& flags);
  // Unmounts it, whatever is open or being read there.
  ~SlowFsMount();
  SlowFsMount(const SlowFsMount&) = delete;
  SlowFsMount& operator=(const SlowFsMount&) = delete;

  // Where it is mounted.
  const std::string& path() const { return mount_; }

  absl::StatusOr<SlowFsReport> Report();

  // As the destructor; an error if the file system did not end well. Called once, the last.
  absl::Status Unmount();

 private:
  SlowFsMount() = default;
  absl::Status MakeFolders();
  absl::Status Spawn(const std::string& source, const std::vector<std::string>& flags);
  // Waits for the child to say `word`: false if it has ended, or says nothing for long.
  bool Hear(char word, int timeout_ms);
  absl::Status WhyNotMounted();
  // The child's exit status, once it has ended.
  int Reap();
  bool IsMounted() const;

  std::string folder_;
  std::string mount_;
  std::string log_file_;
  pid_t child_ = -1;
  int hear_fd_ = -1;  // closes when the child ends
};

}  // namespace sluice::fuse

#endif  // SLUICE_TESTS_FUSE_SLOW_FS_MOUNT_H_
