// open, fstat, read.
#include "storage/file/whole_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "net/fd.h"
#include "storage/source_check.h"
#include "tensor/error_text.h"
#include "tensor/quoted.h"

namespace sluice {

absl::StatusOr<WholeFile> ReadWholeFile(const std::string& path, int64_t bytes_max) {
  // O_NONBLOCK: a pipe is refused, not waited for.
  const Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (fd.get() < 0) return ReadErrnoStatus(errno, absl::StrCat("cannot open ", QuotedPath(path)));
  WholeFile file;
  SLUICE_ASSIGN_OR_RETURN(file.identity, Annotate(IdentifyFile(fd.get()), QuotedPath(path)));
  const auto too_large = [&] {
    return absl::ResourceExhaustedError(
        absl::StrCat(QuotedPath(path), " has more than ", bytes_max, " bytes"));
  };
  if (file.identity.bytes > bytes_max) return too_large();
  // A file may say that it is empty and not be, or grow.
  constexpr int64_t kStepBytes = int64_t{1} << 16;
  const int64_t most = bytes_max + 1;
  int64_t done = 0;
  file.text.resize(static_cast<size_t>(std::clamp(file.identity.bytes + 1, kStepBytes, most)));
  while (true) {
    const ssize_t count =
        read(fd.get(), file.text.data() + done, file.text.size() - static_cast<size_t>(done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return ReadErrnoStatus(errno, absl::StrCat("cannot read ", QuotedPath(path)));
    done += count;
    if (done > bytes_max) return too_large();
    if (count == 0) break;
    const auto size = static_cast<int64_t>(file.text.size());
    if (done == size) file.text.resize(static_cast<size_t>(std::min(2 * size, most)));
  }
  file.text.resize(static_cast<size_t>(done));
  return file;
}

}  // namespace sluice
