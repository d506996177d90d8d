// What sources of files promise beyond the contract: names, what is no file, slow opens, the number
// of open files, truncation, and threads that come and go.
#include "storage/file/file_source.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "storage/file/file_directory.h"
#include "storage/file_storage.h"
#include "storage/source_run.h"

namespace sluice {
namespace {

class FileSourceTest : public testing::TestWithParam<FileEngine> {
 protected:
  // None, and the test is skipped or failed, if there is no such engine.
  std::unique_ptr<Source> Make(const std::vector<std::string>& names,
                               FileSourceOptions options = {}) {
    options.engine = GetParam();
    absl::StatusOr<std::unique_ptr<Source>> source =
        MakeFileSource(storage_.directory(), names, options);
    if (source.ok()) return *std::move(source);
    if (absl::IsUnavailable(source.status())) {
      [&] { GTEST_SKIP() << source.status(); }();
    } else {
      ADD_FAILURE() << source.status();
    }
    return nullptr;
  }

  // Writes files "0" to "count - 1" of `bytes` each, whose contents are contents_.
  std::vector<std::string> WriteFiles(int count, int64_t bytes) {
    std::vector<std::string> names;
    contents_.clear();
    for (int i = 0; i < count; ++i) {
      names.push_back(std::to_string(i));
      contents_.push_back(SourceContent(static_cast<uint64_t>(i), bytes));
      storage_.Write(names.back(), contents_.back());
    }
    return names;
  }

  int OpenFilesInStorage() const {
    int count = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      std::error_code gone;
      const std::string target = std::filesystem::read_symlink(entry.path(), gone);
      count += absl::StartsWith(target, absl::StrCat(storage_.directory(), "/")) ? 1 : 0;
    }
    return count;
  }

  FileStorage storage_;
  std::vector<std::string> contents_;
};

TEST_P(FileSourceTest, RefusesNamesThatLeadOutOfTheDirectory) {
  for (const std::string name : {"/etc/passwd", "..", "../a", "a/../../b", "a/..", ""}) {
    const FileSourceOptions options = {.engine = GetParam()};
    const auto source = MakeFileSource(storage_.directory(), {"good", name}, options);
    EXPECT_TRUE(absl::IsInvalidArgument(source.status())) << name << ": " << source.status();
  }
  EXPECT_TRUE(absl::IsInvalidArgument(CheckFileName(std::string("a\0b", 3))));
  EXPECT_TRUE(CheckFileName("..a/b../...").ok());
}

TEST_P(FileSourceTest, RefusesBadOptions) {
  FileSourceOptions options = {.in_flight_max = 0};
  EXPECT_TRUE(absl::IsInvalidArgument(MakeFileSource("/", {}, options).status()));
  options = {};
  options.engine = GetParam();
  const auto source = MakeFileSource(storage_.Path("nowhere"), {"a"}, options);
  EXPECT_TRUE(absl::IsNotFound(source.status())) << source.status();
}

TEST_P(FileSourceTest, FollowsDirectoriesAndLinks) {
  const std::string content = SourceContent(1, 5000);
  storage_.Write("a/b/c.bin", content);
  std::filesystem::create_symlink("a/b/c.bin", storage_.Path("link"));
  const auto source = Make({"a/b/c.bin", "link"});
  if (source == nullptr) return;
  SourceRun run(source.get());
  const uint64_t cookies[] = {run.Read(0, 0, 5000), run.Read(1, 0, 5000)};
  if (!run.UntilAllEnded()) return;
  for (const uint64_t cookie : cookies) run.ExpectBytes(cookie, content);
}

TEST_P(FileSourceTest, ReadsFilesOnly) {
  std::filesystem::create_directory(storage_.Path("directory"));
  storage_.Write("secret", "content");
  ASSERT_EQ(chmod(storage_.Path("secret").c_str(), 0), 0);
  const auto source = Make({"directory", "secret", "secret/below"});
  if (source == nullptr) return;
  SourceRun run(source.get());
  const uint64_t directory = run.Read(0, 0, 1);
  const uint64_t secret = run.Read(1, 0, 7);
  const uint64_t below = run.Read(2, 0, 7);
  if (!run.UntilAllEnded()) return;
  EXPECT_TRUE(absl::IsInvalidArgument(run.Outcome(directory))) << run.Outcome(directory);
  EXPECT_TRUE(absl::IsNotFound(run.Outcome(below))) << run.Outcome(below);
  if (geteuid() == 0) {
    run.ExpectBytes(secret, "content");
  } else {
    EXPECT_TRUE(absl::IsPermissionDenied(run.Outcome(secret))) << run.Outcome(secret);
  }
}

// Opening a pipe without a writer would wait for one, for ever.
TEST_P(FileSourceTest, PipesAreRefusedAndNotWaitedFor) {
  constexpr int kPipes = 40;
  std::vector<std::string> names;
  for (int i = 0; i < kPipes; ++i) {
    names.push_back(absl::StrCat("pipe", i));
    ASSERT_EQ(mkfifo(storage_.Path(names.back()).c_str(), 0600), 0);
  }
  names.push_back("file");
  const std::string content = SourceContent(1, 10'000);
  storage_.Write("file", content);
  const auto source = Make(names);
  if (source == nullptr) return;
  SourceRun run(source.get());
  std::vector<ReadOp> pipes;
  for (int i = 0; i < kPipes; ++i) pipes.push_back(run.Op(i, 0, 100));
  ASSERT_TRUE(run.Start(pipes).ok());
  const uint64_t file = run.Read(kPipes, 0, 10'000);
  if (!run.UntilAllEnded()) return;
  run.ExpectBytes(file, content);
  for (const ReadOp& op : pipes) EXPECT_TRUE(absl::IsInvalidArgument(run.Outcome(op.cookie)));
}

TEST_P(FileSourceTest, ClosesTheLongestIdleFileBeyondItsLimit) {
  constexpr int kFiles = 12;
  constexpr int kOpen = 3;
  const auto names = WriteFiles(kFiles, 9000);
  const FileSourceOptions options = {.open_files_max = kOpen};
  const auto source = Make(names, options);
  if (source == nullptr) return;
  SourceRun run(source.get());
  for (int round = 0; round < 3; ++round) {
    std::vector<ReadOp> ops;
    for (int i = 0; i < 4 * kFiles; ++i) ops.push_back(run.Op(i * 5 % kFiles, i * 100, 1000));
    ASSERT_TRUE(run.Start(ops).ok());
    while (run.outstanding() > 0) {
      EXPECT_LE(OpenFilesInStorage(), kOpen);
      if (!run.UntilEnded(std::max<int64_t>(0, run.outstanding() - 5))) return;
    }
    run.ExpectAll(ops, contents_);
  }
  EXPECT_GE(source->counters().opens, kFiles);
  // One that stays in use stays open.
  const int64_t opens = source->counters().opens;
  for (int i = 0; i < 10; ++i) {
    run.Read(0, 0, 10);
    if (!run.UntilAllEnded()) return;
  }
  EXPECT_LE(source->counters().opens, opens + 1);
}

// The process may have fewer descriptors left than the source was told.
TEST_P(FileSourceTest, LivesWithTooFewDescriptors) {
  const auto names = WriteFiles(10, 4096);
  const FileSourceOptions options = {.open_files_max = 100};
  const auto source = Make(names, options);
  if (source == nullptr) return;
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const int next_fd = dup(0);
  ASSERT_GE(next_fd, 0);
  close(next_fd);
  rlimit few = before;
  few.rlim_cur = static_cast<rlim_t>(next_fd) + 3;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  SourceRun run(source.get());
  std::vector<ReadOp> ops;
  for (int i = 0; i < 30; ++i) ops.push_back(run.Op(i % 10, i * 10, 1000));
  const absl::Status started = run.Start(ops);
  const bool ended = started.ok() && run.UntilAllEnded();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_TRUE(started.ok()) << started;
  if (!ended) return;
  run.ExpectAll(ops, contents_);
}

TEST_P(FileSourceTest, NoticesTruncation) {
  for (const FileAccess access : {FileAccess::kDirect, FileAccess::kBuffered}) {
    const auto names = WriteFiles(1, 1 << 20);
    const FileSourceOptions options = {.access = access};
    const auto source = Make(names, options);
    if (source == nullptr) return;
    SourceRun run(source.get());
    const uint64_t before = run.Read(0, 500'000, 10'000);
    if (!run.UntilAllEnded()) return;
    EXPECT_TRUE(run.Outcome(before).ok());
    ASSERT_EQ(truncate(storage_.Path("0").c_str(), 10'000), 0);
    const uint64_t gone = run.Read(0, 500'000, 10'000);
    const uint64_t cut = run.Read(0, 9000, 2000);
    const uint64_t left = run.Read(0, 9000, 1000);
    if (!run.UntilAllEnded()) return;
    EXPECT_TRUE(absl::IsDataLoss(run.Outcome(gone))) << run.Outcome(gone);
    EXPECT_TRUE(absl::IsDataLoss(run.Outcome(cut))) << run.Outcome(cut);
    run.ExpectBytes(left, contents_[0].substr(9000, 1000));
  }
}

// Whoever begins reads may end before they do.
TEST_P(FileSourceTest, GoesFromThreadToThread) {
  const auto names = WriteFiles(4, 400'000);
  const auto source = Make(names);
  if (source == nullptr) return;
  SourceRun run(source.get());
  std::vector<ReadOp> ops;
  for (int i = 0; i < 64; ++i) ops.push_back(run.Op(i % 4, i * 5000, 50'000));
  std::thread([&] { EXPECT_TRUE(run.Start(ops).ok()); }).join();
  std::thread([&] { run.Poll(5); }).join();
  if (!run.UntilAllEnded()) return;
  run.ExpectAll(ops, contents_);
}

INSTANTIATE_TEST_SUITE_P(Engine, FileSourceTest,
                         testing::Values(FileEngine::kUring, FileEngine::kThreads),
                         [](const testing::TestParamInfo<FileEngine>& engine) {
                           return engine.param == FileEngine::kUring ? "Uring" : "Threads";
                         });

// Where a file system demands no alignment, no byte is read that nobody asked for.
TEST(FileAlignmentTest, MemoryFilesAreReadExactly) {
  if (!std::filesystem::is_directory("/dev/shm")) GTEST_SKIP() << "no /dev/shm";
  const FileStorage storage("/dev/shm");
  const std::string content = SourceContent(1, 20'000);
  storage.Write("a", content);
  const auto source = MakeFileSource(storage.directory(), {"a"}, {}).value();
  EXPECT_EQ(source->alignment(), kReadAlignment);
  SourceRun run(source.get());
  const uint64_t cookie = run.Read(0, 777, 1001);
  if (!run.UntilAllEnded()) return;
  run.ExpectBytes(cookie, content.substr(777, 1001));
  EXPECT_EQ(source->counters().bytes_read, 1001);
}

TEST(FileDirectoryTest, RaisesTheLimitOfOpenFiles) {
  const int open_files_max = OpenFilesMax();
  EXPECT_GE(open_files_max, 1);
  rlimit limit;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_EQ(limit.rlim_cur, limit.rlim_max);
}

}  // namespace
}  // namespace sluice
