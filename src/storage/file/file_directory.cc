// Names of objects, and how many files may be open.
#include "storage/file/file_directory.h"

#include <fcntl.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "storage/source_check.h"
#include "tensor/error_text.h"

namespace sluice {

absl::Status CheckFileName(absl::string_view name) {
  const auto refuse = [&](absl::string_view why) {
    return absl::InvalidArgumentError(
        absl::StrCat("an object's name that ", why, ": '", name, "'"));
  };
  if (name.empty()) return refuse("is empty");
  if (name.find('\0') != name.npos) return refuse("has a zero byte");
  if (name.front() == '/') return refuse("is no relative path");
  for (const absl::string_view part : absl::StrSplit(name, '/')) {
    if (part == "..") return refuse("may lead out of its directory");
  }
  return absl::OkStatus();
}

absl::StatusOr<Fd> OpenObjectDirectory(const std::string& directory,
                                       const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    SLUICE_RETURN_IF_ERROR(CheckFileName(name));
  }
  Fd fd(open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (fd.get() < 0) return ReadErrnoStatus(errno, absl::StrCat("opening directory ", directory));
  return fd;
}

int OpenFilesMax() {
  constexpr rlim_t kEnough = 1 << 16;
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 64;
  if (limit.rlim_cur < limit.rlim_max) {
    rlimit raised = limit;
    raised.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &raised) == 0) limit = raised;
  }
  // An unlimited number is a huge one.
  return static_cast<int>(std::clamp<rlim_t>(limit.rlim_cur / 2, 1, kEnough));
}

}  // namespace sluice
