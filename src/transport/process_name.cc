// Reads from /proc and pidfds about processes.
#include "transport/process_name.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace sluice {
namespace {

// Allocates nothing: ranks look again and again.
class SmallFile {
 public:
  SmallFile(int directory, const char* path) {
    const Fd fd(openat(directory, path, O_RDONLY | O_CLOEXEC));
    if (!fd.is_open()) return;
    const ssize_t count = read(fd.get(), text_.data(), text_.size());
    bytes_ = count < 0 ? 0 : static_cast<size_t>(count);
  }
  // Its beginning; empty if it cannot be read.
  absl::string_view text() const { return {text_.data(), bytes_}; }

 private:
  std::array<char, 1024> text_;
  size_t bytes_ = 0;
};

struct ProcessState {
  char state = '\0';  // '\0': there is no such process, or it cannot be read
  uint64_t start_ticks = 0;
};

// Reads /proc/PID/stat. The name comes in parentheses, and may hold anything.
ProcessState ReadState(int directory, const char* path) {
  const SmallFile stat(directory, path);
  ProcessState result;
  const size_t end = stat.text().rfind(')');
  if (end == absl::string_view::npos) return result;
  constexpr int kStart = 19;  // field 22 of the file; the state is field 3
  char state = '\0';
  int word = 0;
  for (const absl::string_view each :
       absl::StrSplit(stat.text().substr(end + 1), ' ', absl::SkipEmpty())) {
    if (word == 0) state = each[0];
    if (word++ < kStart) continue;
    if (absl::SimpleAtoi(each, &result.start_ticks)) result.state = state;
    break;
  }
  return result;
}

bool IsGone(const ProcessState& state) {
  return state.state == '\0' || state.state == 'Z' || state.state == 'X';
}

}  // namespace

ProcessName OwnProcessName() {
  ProcessName name;
  name.pid = getpid();
  const SmallFile boot(AT_FDCWD, "/proc/sys/kernel/random/boot_id");
  const size_t bytes = std::min({boot.text().size(), boot.text().find('\n'), name.boot.size() - 1});
  std::copy_n(boot.text().begin(), bytes, name.boot.begin());
  struct stat info = {};
  if (stat("/proc/self/ns/pid", &info) == 0) name.pid_namespace = info.st_ino;
  name.start_ticks = ReadState(AT_FDCWD, "/proc/self/stat").start_ticks;
  return name;
}

bool SeeEachOther(const ProcessName& a, const ProcessName& b) {
  return a.boot == b.boot && a.pid_namespace == b.pid_namespace;
}

ProcessHandle::ProcessHandle(const ProcessName& name, Way way)
    : pid_(name.pid), is_own_(name.pid == getpid()) {
  if (is_own_) return;
  proc_fd_ = Fd(open(absl::StrCat("/proc/", pid_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const bool has_proc = name.start_ticks != 0;
  if (has_proc) {
    const ProcessState state = ReadState(proc_fd_.get(), "stat");
    ended_ = !proc_fd_.is_open() || IsGone(state) || state.start_ticks != name.start_ticks;
  }
  if (ended_ || way == Way::kProc) return;
  exit_fd_ = Fd(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
  if (!exit_fd_.is_open()) {
    ended_ = errno == ESRCH;
    if (!ended_) pidfd_error_ = errno;
    return;
  }
  // Between the two looks at its number it may have gone to another process.
  if (has_proc) ended_ = IsGone(ReadState(proc_fd_.get(), "stat"));
  proc_fd_.Close();
}

bool ProcessHandle::HasEnded() const {
  if (ended_) return true;
  if (exit_fd_.is_open()) {
    pollfd ended = {exit_fd_.get(), POLLIN, 0};
    return poll(&ended, 1, 0) > 0;
  }
  return proc_fd_.is_open() && IsGone(ReadState(proc_fd_.get(), "stat"));
}

}  // namespace sluice
