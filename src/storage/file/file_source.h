// Reads files of a directory, around the page cache or through it, with io_uring or, where that is
// not allowed, with threads.
#ifndef SLUICE_SRC_STORAGE_FILE_FILE_SOURCE_H_
#define SLUICE_SRC_STORAGE_FILE_FILE_SOURCE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "storage/file/file_identity.h"
#include "storage/source.h"

namespace sluice {

enum class FileAccess {
  // Around the page cache (O_DIRECT) where the file system can. Its alignment() is kReadAlignment.
  // A read is rounded to what its file demands, which is nothing on FUSE and tmpfs.
  kDirect,
  // alignment() is 1. Start and Poll copy what the cache holds. Threads of the kernel's copy it if
  // an op is to be read aside.
  kBuffered,
};

enum class FileEngine {
  kBest,     // io_uring, and threads where it is not allowed or too old
  kUring,    // or Unavailable
  kThreads,  // one blocking call each
};

struct FileSourceOptions {
  FileAccess access = FileAccess::kDirect;
  FileEngine engine = FileEngine::kBest;
  int in_flight_max = 128;  // reads and opens that the kernel has at once
  int threads_max = 16;     // the same where threads read
  // Files open at once. Beyond this, idle files are closed, the longest idle first. If 0, it is
  // half of what the process may open, for which its soft limit is raised to the hard one.
  int open_files_max = 0;
  // Told of each file when it is opened and before it is closed, and asked whether it is the right
  // one. Reads of another one end with DataLoss. Null: whatever has the name is read.
  std::shared_ptr<FileIdentities> identities = nullptr;
};

// `names` are relative to `directory` and may have slashes. InvalidArgument for names that lead out
// of it ("..", absolute) or nowhere. NotFound if there is no such directory. Whether the files
// exist shows when they are read. A read ends with
//   `InvalidArgument`  For what is no file: a directory, a pipe.
//   `Unavailable`      For EIO and its like. An interrupted call is repeated at once.
// Start and Poll do not block. The end of the source waits for reads that the kernel has and cannot
// give up. The thread may change between calls.
absl::StatusOr<std::unique_ptr<Source>> MakeFileSource(const std::string& directory,
                                                       std::vector<std::string> names,
                                                       const FileSourceOptions& options);

}  // namespace sluice

#endif  // SLUICE_SRC_STORAGE_FILE_FILE_SOURCE_H_
