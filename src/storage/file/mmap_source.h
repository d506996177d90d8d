// Reads files by mapping them: for files that the page cache holds, or will.
#ifndef SLUICE_SRC_STORAGE_FILE_MMAP_SOURCE_H_
#define SLUICE_SRC_STORAGE_FILE_MMAP_SOURCE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "storage/file/file_identity.h"
#include "storage/source.h"

namespace sluice {

struct MmapSourceOptions {
  int64_t poll_bytes_max = 1 << 20;  // copied in one call of Poll
  int files_max = 0;                 // mapped at once; the longest unused goes. 0: many
  std::shared_ptr<FileIdentities> identities = nullptr;  // as FileSourceOptions has it
  bool read_ahead = true;  // false: the kernel is not told what will be needed
};

// Names and errors as for MakeFileSource. An object is mapped whole with its first read, and keeps
// the length that it has then. Start announces reads to the kernel (MADV_WILLNEED). Poll copies
// bytes in the order asked for, so a Poll may sleep until the kernel has read a page. A file that
// is truncated gives DataLoss, not SIGBUS.
//
// Nothing is copied for an op that may_lend, and Poll does not sleep: the event has a place in the
// mapping. The first reader of that place may sleep. A mapping lives as long as any of it is lent.
// Nothing is lent if SIGBUS has a handler that was set later than BusGuard's. Nor is anything lent
// while so many files are mapped that descriptors would run out.
absl::StatusOr<std::unique_ptr<Source>> MakeMmapSource(const std::string& directory,
                                                       std::vector<std::string> names,
                                                       const MmapSourceOptions& options);

}  // namespace sluice

#endif  // SLUICE_SRC_STORAGE_FILE_MMAP_SOURCE_H_
