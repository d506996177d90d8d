// Checks of reads, and their errors.
#include "storage/source_check.h"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"

namespace sluice {

absl::Status CheckReadOps(absl::Span<const ReadOp> ops, int objects) {
  for (const ReadOp& op : ops) {
    if (op.object < 0 || op.object >= objects) {
      return absl::InvalidArgumentError(
          absl::StrCat("a read of object ", op.object, " of ", objects));
    }
    if (op.offset < 0 || op.bytes < 1 || op.offset > INT64_MAX - op.bytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("a read of ", op.bytes, " bytes at ", op.offset));
    }
    if (op.data == nullptr || reinterpret_cast<uintptr_t>(op.data) % kReadAlignment != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("a read into memory that is not aligned to ", kReadAlignment));
    }
  }
  return absl::OkStatus();
}

std::string RangeText(absl::string_view object, int64_t offset, int64_t bytes) {
  return absl::StrCat("bytes ", offset, " to ", offset + bytes - 1, " of ", object);
}

absl::Status ReadErrnoStatus(int error, absl::string_view what) {
  char buffer[128];
  // GNU's strerror_r returns the text.
  const std::string text = absl::StrCat(what, ": ", strerror_r(error, buffer, sizeof(buffer)));
  switch (error) {
    case EIO:
    case EAGAIN:
    case EINTR:
    case EBUSY:
    case ETIMEDOUT:
    case ESTALE:
    case ENOBUFS:
    case ECONNRESET:
    case EHOSTDOWN:
    case EREMOTEIO:
      return absl::UnavailableError(text);
    case ENOENT:
    case ENOTDIR:
      return absl::NotFoundError(text);
    case EACCES:
    case EPERM:
    case EROFS:
      return absl::PermissionDeniedError(text);
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case ENOSPC:  // of bytes or of inodes
    case EDQUOT:
    case EFBIG:
      return absl::ResourceExhaustedError(text);
    case EINVAL:
    case EISDIR:
    case ENAMETOOLONG:
      return absl::InvalidArgumentError(text);
    default:
      return absl::UnknownError(text);
  }
}

}  // namespace sluice
