// Which engine reads files where io_uring is forbidden, as in many containers.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>
#include <string>
#include <thread>

#include "gtest/gtest.h"
#include "storage/file/file_source.h"
#include "storage/file_storage.h"
#include "storage/source_run.h"

namespace sluice {
namespace {

// For the calling thread and those that it starts, for good. False: the kernel does not do that.
bool ForbidUring() {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program = {.len = 4, .filter = filter};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST(FileEngineTest, ThreadsReadWhereUringIsForbidden) {
  const FileStorage storage;
  const std::string content = SourceContent(1, 50'000);
  storage.Write("a", content);
  bool forbidden = false;
  std::thread([&] {
    forbidden = ForbidUring();
    if (!forbidden) return;
    FileSourceOptions options;
    options.engine = FileEngine::kUring;
    const auto none = MakeFileSource(storage.directory(), {"a"}, options);
    EXPECT_TRUE(absl::IsUnavailable(none.status())) << none.status();
    options.engine = FileEngine::kBest;
    const auto source = MakeFileSource(storage.directory(), {"a"}, options);
    ASSERT_TRUE(source.ok()) << source.status();
    SourceRun run(source->get());
    const uint64_t cookie = run.Read(0, 10, 49'000);
    if (!run.UntilAllEnded()) return;
    run.ExpectBytes(cookie, absl::string_view(content).substr(10, 49'000));
  }).join();
  if (!forbidden) GTEST_SKIP() << "no seccomp";
}

}  // namespace
}  // namespace sluice
