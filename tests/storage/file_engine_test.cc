// Files by each engine: the contract of sources, what is chosen, and reads at once.
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "storage/file/file_source.h"
#include "storage/file_storage.h"
#include "storage/forbid_uring.h"
#include "storage/source_contract.h"
#include "storage/source_run.h"

namespace sluice {
namespace {

TEST(FileEngineTest, ThreadsReadWhereUringIsForbidden) {
  const FileStorage storage;
  const std::string content = SourceContent(1, 50'000);
  storage.Write("a", content);
  bool forbidden = false;
  std::thread([&] {
    forbidden = ForbidUring();
    if (!forbidden) return;
    FileSourceOptions options = {.engine = FileEngine::kUring};
    const auto none = MakeFileSource(storage.directory(), {"a"}, options);
    EXPECT_TRUE(absl::IsUnavailable(none.status())) << none.status();
    options.engine = FileEngine::kBest;
    const auto source = MakeFileSource(storage.directory(), {"a"}, options).value();
    SourceRun run(source.get());
    const uint64_t cookie = run.Read(0, 10, 49'000);
    if (!run.UntilAllEnded()) return;
    run.ExpectBytes(cookie, absl::string_view(content).substr(10, 49'000));
  }).join();
  if (!forbidden) GTEST_SKIP() << "no seccomp";
}

constexpr char kMemory[] = "/dev/shm";  // tmpfs

ContractStorage Storage(std::string name, FileEngine engine, FileAccess access,
                        const std::string& parent) {
  const auto make = [=](const std::vector<ContractObject>& objects,
                        int in_flight_max) -> absl::StatusOr<ContractSource> {
    if (!parent.empty() && !std::filesystem::is_directory(parent)) {
      return absl::UnavailableError(absl::StrCat("no ", parent));
    }
    const auto storage = std::make_shared<FileStorage>(parent);
    const FileSourceOptions options = {
        .access = access, .engine = engine, .in_flight_max = in_flight_max};
    absl::StatusOr<std::unique_ptr<Source>> source =
        MakeFileSource(storage->directory(), storage->Write(objects), options);
    if (!source.ok()) return source.status();
    return ContractSource{.storage = storage, .source = *std::move(source)};
  };
  return {.name = std::move(name), .make = make};
}

INSTANTIATE_TEST_SUITE_P(
    File, SourceContract,
    testing::Values(Storage("UringDirect", FileEngine::kUring, FileAccess::kDirect, ""),
                    Storage("UringBuffered", FileEngine::kUring, FileAccess::kBuffered, ""),
                    Storage("UringMemory", FileEngine::kUring, FileAccess::kDirect, kMemory),
                    Storage("ThreadsDirect", FileEngine::kThreads, FileAccess::kDirect, ""),
                    Storage("ThreadsBuffered", FileEngine::kThreads, FileAccess::kBuffered, ""),
                    Storage("ThreadsMemory", FileEngine::kThreads, FileAccess::kDirect, kMemory)),
    ContractStorageName);

constexpr int64_t kBytes = int64_t{1} << 20;

class AtOnceTest : public testing::TestWithParam<FileEngine> {
 protected:
  void SetUp() override {
    content_ = SourceContent(1, kBytes);
    storage_.Write("a", content_);
    const FileSourceOptions options = {.access = FileAccess::kBuffered, .engine = GetParam()};
    absl::StatusOr<std::unique_ptr<Source>> source =
        MakeFileSource(storage_.directory(), {"a"}, options);
    if (absl::IsUnavailable(source.status())) GTEST_SKIP() << source.status();
    ASSERT_TRUE(source.ok()) << source.status();
    source_ = *std::move(source);
    run_ = std::make_unique<SourceRun>(source_.get());
  }
  // The page cache has the whole file, and says so.
  bool IsCached() const {
    const int fd = open(storage_.Path("a").c_str(), O_RDONLY | O_CLOEXEC);
    std::string bytes(kBytes, 0);
    const iovec into = {bytes.data(), bytes.size()};
    const ssize_t read = preadv2(fd, &into, 1, 0, RWF_NOWAIT);
    close(fd);
    return read == kBytes;
  }
  // Out of the page cache. What is not on the disk yet cannot be dropped.
  void Drop() const {
    const int fd = open(storage_.Path("a").c_str(), O_RDONLY | O_CLOEXEC);
    EXPECT_EQ(fsync(fd), 0);
    EXPECT_EQ(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
    close(fd);
  }
  // Reads the file once, and looks afterwards whether the page cache has it.
  bool ReadsAtOnce(bool* cached) {
    const uint64_t cookie = run_->Read(0, 0, kBytes);
    if (!run_->UntilAllEnded()) return false;
    run_->ExpectBytes(cookie, content_);
    *cached = IsCached();
    return run_->AtOnce(cookie);
  }

  FileStorage storage_;
  std::string content_;
  std::unique_ptr<Source> source_;
  std::unique_ptr<SourceRun> run_;
};

TEST_P(AtOnceTest, WhatThePageCacheHasIsThereAtOnce) {
  bool cached = false;
  // The kernel may drop pages at any time, and say no for reasons of its own.
  for (int i = 0; i < 100; ++i) {
    if (ReadsAtOnce(&cached)) return;
  }
  if (!cached) GTEST_SKIP() << "no page cache here tells what it has";
  FAIL() << "a file in the page cache was never there at once";
}

TEST_P(AtOnceTest, WhatThePageCacheHasNotIsWaitedFor) {
  Drop();
  if (IsCached()) GTEST_SKIP() << "a file system without a disk";
  // Looking may have made the kernel read ahead, and it does not drop pages that are on their way.
  for (int i = 0; i < 100; ++i) {
    Drop();
    const uint64_t cookie = run_->Read(0, 0, kBytes);
    ASSERT_TRUE(run_->UntilAllEnded());
    run_->ExpectBytes(cookie, content_);
    if (!run_->AtOnce(cookie)) return;
  }
  FAIL() << "a file that was dropped from the page cache was there at once each time";
}

TEST_P(AtOnceTest, ReadingAsideBringsTheSame) {
  std::vector<ReadOp> ops;
  for (int64_t i = 0; i < 8; ++i) {
    const int64_t offset = i * 1000;
    ops.push_back(run_->Op(0, offset, i % 2 == 0 ? kBytes - offset : 10));
    ops.back().aside = true;
  }
  if (!run_->Finish(ops)) return;
  run_->ExpectAll(ops, content_);
  run_->ExpectGuards();
}

INSTANTIATE_TEST_SUITE_P(Engines, AtOnceTest,
                         testing::Values(FileEngine::kUring, FileEngine::kThreads),
                         [](const testing::TestParamInfo<FileEngine>& engine) {
                           return engine.param == FileEngine::kUring ? "Uring" : "Threads";
                         });

}  // namespace
}  // namespace sluice
