// slow_fs: a file system that shows a directory as slow network storage would, with seeded delays
// and faults, and counts what it is asked for. It is for tests and benchmarks.
//
// This file mounts it, takes requests from the kernel and signals from users, and unmounts it.
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "fuse/slow_files.h"
#include "fuse/slow_fs_options.h"

namespace sluice::fuse {
namespace {

SlowFiles& Of(fuse_req_t req) { return *static_cast<SlowFiles*>(fuse_req_userdata(req)); }

fuse_lowlevel_ops Operations() {
  fuse_lowlevel_ops ops{};
  ops.init = [](void* fs, fuse_conn_info* conn) { static_cast<SlowFiles*>(fs)->Init(conn); };
  ops.lookup = [](fuse_req_t req, fuse_ino_t parent, const char* name) {
    Of(req).Lookup(req, parent, name);
  };
  // Numbers are kept for ever.
  ops.forget = [](fuse_req_t req, fuse_ino_t, uint64_t) { fuse_reply_none(req); };
  ops.getattr = [](fuse_req_t req, fuse_ino_t ino, fuse_file_info*) { Of(req).GetAttr(req, ino); };
  ops.readdir = [](fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, fuse_file_info*) {
    Of(req).ReadDir(req, ino, size, offset);
  };
  ops.open = [](fuse_req_t req, fuse_ino_t ino, fuse_file_info* info) {
    Of(req).Open(req, ino, *info);
  };
  ops.read = [](fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, fuse_file_info* info) {
    Of(req).Read(req, ino, size, offset, *info);
  };
  ops.release = [](fuse_req_t req, fuse_ino_t, fuse_file_info* info) {
    Of(req).Release(req, *info);
  };
  return ops;
}

// Writes a report on each SIGUSR1, which all threads have blocked.
class Reporter {
 public:
  explicit Reporter(SlowFiles* fs) : thread_([this, fs] { Run(fs); }) {}
  ~Reporter() {
    stopping_ = true;
    pthread_kill(thread_.native_handle(), SIGUSR1);
    thread_.join();
  }
  Reporter(const Reporter&) = delete;
  Reporter& operator=(const Reporter&) = delete;

 private:
  void Run(SlowFiles* fs) {
    sigset_t wanted;
    sigemptyset(&wanted);
    sigaddset(&wanted, SIGUSR1);
    int signal = 0;
    while (sigwait(&wanted, &signal) == 0 && !stopping_) fs->WriteReport();
  }

  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

void MaskSignals(int how) {
  sigset_t ends;
  sigemptyset(&ends);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&ends, signal);
  pthread_sigmask(how, &ends, nullptr);
}

// Serves until it is unmounted or told to end.
int Serve(const SlowFsOptions& options) {
  // Only this thread is to be interrupted, which is in the kernel most of the time.
  MaskSignals(SIG_BLOCK);
  sigset_t report;
  sigemptyset(&report);
  sigaddset(&report, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &report, nullptr);
  SlowFiles fs(options);

  const char* args[] = {"slow_fs", "-o", "ro,fsname=slow_fs"};
  fuse_args arguments = FUSE_ARGS_INIT(3, const_cast<char**>(args));
  const fuse_lowlevel_ops operations = Operations();
  fuse_session* const session = fuse_session_new(&arguments, &operations, sizeof(operations), &fs);
  fuse_opt_free_args(&arguments);
  if (session == nullptr) return kSlowFsCannotMount;
  int code = kSlowFsCannotMount;
  if (fuse_set_signal_handlers(session) == 0) {
    if (fuse_session_mount(session, options.mount.c_str()) == 0) {
      {
        const Reporter reporter(&fs);
        MaskSignals(SIG_UNBLOCK);
        code = fuse_session_loop(session) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
        // Whoever asks once more meets no handler, and must not end the process before its report.
        MaskSignals(SIG_BLOCK);
        fs.Stop();
      }
      fuse_session_unmount(session);
      fs.WriteReport();
    }
    fuse_remove_signal_handlers(session);
  }
  fuse_session_destroy(session);
  return code;
}

}  // namespace
}  // namespace sluice::fuse

int main(int argc, char** argv) {
  const auto options = sluice::fuse::ParseSlowFsOptions(argc, argv);
  if (!options.ok() && options.status().message().empty()) return EXIT_SUCCESS;
  if (!options.ok()) {
    std::fprintf(stderr, "slow_fs: %s\n", std::string(options.status().message()).c_str());
    return sluice::fuse::kSlowFsBadFlags;
  }
  if (options->parent > 0) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != options->parent) return EXIT_FAILURE;  // it has ended before
  }
  return sluice::fuse::Serve(*options);
}
