// A file mapped into memory, whose bytes are copied out without a signal if they are gone. Reading
// them where they lie takes a guard.
//
// Reading a mapped page raises SIGBUS if its file no longer has it (truncated) or if it cannot be
// read (an I/O error). No check beforehand can exclude this. So the processor never touches the
// mapping. The kernel copies out of it (process_vm_readv of our own process) and reports a failure
// as EFAULT. This has about three quarters of memcpy's speed. The bytes are read from the file
// instead if the kernel may not copy (seccomp). So are they to learn what is wrong with a page. So
// nothing handles SIGBUS in a program that only copies. Once a mapping is lent, there is a handler:
// see storage/file/bus_guard.h.
#ifndef SLUICE_SRC_STORAGE_FILE_MAPPED_FILE_H_
#define SLUICE_SRC_STORAGE_FILE_MAPPED_FILE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "net/fd.h"

namespace sluice {

class MappedFile {
 public:
  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept { *this = std::move(other); }
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  // Maps the whole file, as it is now. NotFound, InvalidArgument if it is no file, ...
  static absl::StatusOr<MappedFile> Map(int directory_fd, const std::string& name);

  int fd() const { return fd_.get(); }
  const std::byte* data() const { return data_; }  // null if the file is empty
  int64_t bytes() const { return bytes_; }
  // Asks the kernel to have a range read soon, all of it. Has no effect beyond the file.
  void WillNeed(int64_t offset, int64_t bytes) const;
  // Copies `into.size()` bytes from `offset` on. DataLoss where the file ends before them.
  absl::Status Read(int64_t offset, absl::Span<std::byte> into) const;
  // DataLoss if the file ends before `end` by now. Read may then have given zeros before: the last
  // page of a mapping is filled up with them.
  absl::Status CheckEnd(int64_t end) const;

 private:
  // Copies what it can, at least a byte if there is one; 0 at the file's end.
  absl::StatusOr<int64_t> ReadSome(int64_t offset, absl::Span<std::byte> into) const;

  Fd fd_;
  std::byte* data_ = nullptr;  // none if the file is empty
  int64_t bytes_ = 0;
};

}  // namespace sluice

#endif  // SLUICE_SRC_STORAGE_FILE_MAPPED_FILE_H_
