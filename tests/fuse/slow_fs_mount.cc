// Starting, asking and ending slow_fs.
#include "fuse/slow_fs_mount.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "fuse/slow_fs_options.h"

namespace sluice::fuse {
namespace {

constexpr int kPatienceMs = 60'000;  // with a machine that is busy
constexpr int kGoodbyeMs = 200;      // between two requests to end
constexpr int kGoodbyes = 50;
constexpr int kChildFd = 3;

absl::Status SystemError(absl::string_view what) {
  return absl::InternalError(absl::StrCat(what, ": ", std::strerror(errno)));
}

SlowFsReport::Object ObjectOf(const nlohmann::json& json) {
  return {json.at("opens"), json.at("reads"), json.at("bytes"), json.at("errors")};
}

}  // namespace

absl::StatusOr<std::unique_ptr<SlowFsMount>> SlowFsMount::Create(
    const std::string& source, const std::vector<std::string>& flags) {
#ifndef SLOW_FS_PROGRAM
  return absl::UnavailableError("there is no libfuse3");
#endif
  const int device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
  if (device < 0) return absl::UnavailableError(absl::StrCat("/dev/fuse: ", std::strerror(errno)));
  close(device);
  // Without it, as in a chroot of Debian 13, fusermount3 mounts for users and does not unmount.
  if (geteuid() != 0 && access("/etc/mtab", R_OK) != 0) {
    return absl::UnavailableError(absl::StrCat("/etc/mtab: ", std::strerror(errno)));
  }
  std::unique_ptr<SlowFsMount> mount(new SlowFsMount());
  if (absl::Status status = mount->MakeFolders(); !status.ok()) return status;
  if (absl::Status status = mount->Spawn(source, flags); !status.ok()) return status;
  if (!mount->Hear('m', kPatienceMs)) return mount->WhyNotMounted();
  return mount;
}

SlowFsMount::~SlowFsMount() {
  static_cast<void>(Unmount());
  if (hear_fd_ >= 0) close(hear_fd_);
  std::error_code ignored;
  // Not what is shown there, should it still be mounted.
  if (!folder_.empty() && !IsMounted()) std::filesystem::remove_all(folder_, ignored);
}

absl::Status SlowFsMount::MakeFolders() {
  std::string name = (std::filesystem::temp_directory_path() / "slow_fs.XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) return SystemError(name);
  folder_ = name;
  mount_ = folder_ + "/mount";
  log_file_ = folder_ + "/log.json";
  if (mkdir(mount_.c_str(), 0700) != 0) return SystemError(mount_);
  return absl::OkStatus();
}

absl::Status SlowFsMount::Spawn(const std::string& source, const std::vector<std::string>& flags) {
#ifdef SLOW_FS_PROGRAM
  std::vector<std::string> args = {SLOW_FS_PROGRAM,
                                   absl::StrCat("--source=", source),
                                   absl::StrCat("--mount=", mount_),
                                   absl::StrCat("--log=", log_file_),
                                   absl::StrCat("--ready-fd=", kChildFd),
                                   absl::StrCat("--parent=", getpid())};
  args.insert(args.end(), flags.begin(), flags.end());
  std::vector<char*> argv;
  for (std::string& arg : args) argv.push_back(arg.data());
  argv.push_back(nullptr);
  int pipe_fds[2];
  if (pipe2(pipe_fds, O_CLOEXEC) != 0) return SystemError("pipe2");
  hear_fd_ = pipe_fds[0];
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, pipe_fds[1], kChildFd);
  const int error = posix_spawn(&child_, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(pipe_fds[1]);
  if (error == 0) return absl::OkStatus();
  child_ = -1;
  return absl::InternalError(absl::StrCat(args[0], ": ", std::strerror(error)));
#else
  static_cast<void>(source);
  static_cast<void>(flags);
  return absl::UnavailableError("there is no libfuse3");
#endif
}

bool SlowFsMount::Hear(char word, int timeout_ms) {
  while (true) {
    pollfd heard = {hear_fd_, POLLIN, 0};
    const int ready = poll(&heard, 1, timeout_ms);
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    char said = 0;
    if (read(hear_fd_, &said, 1) != 1) return false;
    if (said == word) return true;
  }
}

absl::Status SlowFsMount::WhyNotMounted() {
  pollfd heard = {hear_fd_, POLLIN, 0};
  if (poll(&heard, 1, 0) == 0) return absl::DeadlineExceededError("slow_fs does not mount");
  const int status = Reap();
  if (WIFEXITED(status) && WEXITSTATUS(status) == kSlowFsCannotMount) {
    return absl::UnavailableError("mounting with /dev/fuse is refused");
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == kSlowFsBadFlags) {
    return absl::InvalidArgumentError("slow_fs does not like its flags");
  }
  return absl::InternalError(absl::StrCat("slow_fs has ended with status ", status));
}

absl::StatusOr<SlowFsReport> SlowFsMount::Report() {
  if (kill(child_, SIGUSR1) != 0) return SystemError("asking slow_fs");
  if (!Hear('r', kPatienceMs)) return absl::InternalError("slow_fs does not report");
  std::ifstream file(log_file_);
  const nlohmann::json json = nlohmann::json::parse(file, nullptr, false);
  if (json.is_discarded()) return absl::InternalError(absl::StrCat(log_file_, " is no JSON"));
  SlowFsReport report;
  report.in_flight = json.at("in_flight");
  report.in_flight_max = json.at("in_flight_max");
  for (const auto& [path, counts] : json.at("objects").items()) {
    const SlowFsReport::Object object = ObjectOf(counts);
    report.objects[path] = object;
    report.total.opens += object.opens;
    report.total.reads += object.reads;
    report.total.bytes += object.bytes;
    report.total.errors += object.errors;
  }
  return report;
}

int SlowFsMount::Reap() {
  int status = 0;
  while (waitpid(child_, &status, 0) < 0 && errno == EINTR) continue;
  child_ = -1;
  return status;
}

bool SlowFsMount::IsMounted() const {
  struct stat folder {};
  struct stat mount {};
  if (stat(folder_.c_str(), &folder) != 0) return false;
  // What has lost its process cannot be looked at either.
  return stat(mount_.c_str(), &mount) != 0 ? errno == ENOTCONN : mount.st_dev != folder.st_dev;
}

absl::Status SlowFsMount::Unmount() {
  if (child_ < 0) return absl::OkStatus();
  // The signal may come between two of its looks, and is lost on it then.
  int left = kGoodbyes;
  bool ended = false;
  while (!ended && left-- > 0) {
    kill(child_, SIGTERM);
    pollfd heard = {hear_fd_, 0, 0};  // hung up, whatever it has said before
    ended = poll(&heard, 1, kGoodbyeMs) > 0;
  }
  if (!ended) kill(child_, SIGKILL);
  const int status = Reap();
  if (IsMounted()) umount2(mount_.c_str(), MNT_DETACH);
  if (status == 0) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("slow_fs has ended with status ", status));
}

}  // namespace sluice::fuse
