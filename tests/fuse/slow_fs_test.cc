// The mounted file system: what it shows, counts, delays together, and breaks as told.
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "fuse/slow_fs_mount.h"
#include "gtest/gtest.h"

namespace sluice::fuse {
namespace {

constexpr size_t kPageBytes = 4096;

char ByteAt(size_t i) { return static_cast<char>(i * 31 + i / kPageBytes * 7); }

class File {
 public:
  explicit File(const std::string& path, int flags = O_RDONLY) : fd_(open(path.c_str(), flags)) {
    EXPECT_GE(fd_, 0) << path;
  }
  ~File() { close(fd_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int fd() const { return fd_; }

  // What pread returns, with the bytes checked.
  ssize_t Read(size_t offset, size_t bytes) const {
    std::vector<char> buffer(bytes);
    const ssize_t got = pread(fd_, buffer.data(), bytes, static_cast<off_t>(offset));
    for (ssize_t i = 0; i < got; ++i) {
      if (buffer[static_cast<size_t>(i)] == ByteAt(offset + static_cast<size_t>(i))) continue;
      ADD_FAILURE() << "wrong byte at " << offset << " + " << i;
      break;
    }
    return got;
  }

 private:
  const int fd_;
};

class SlowFsTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "/slow_fs_source.XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    source_ = name;
  }
  void TearDown() override {
    if (mount_ != nullptr) {
      EXPECT_EQ(mount_->Unmount(), absl::OkStatus());
    }
    mount_.reset();
    std::filesystem::remove_all(source_);
  }

  void MakeFile(const std::string& path, size_t bytes) const {
    const std::filesystem::path file = source_ + "/" + path;
    std::filesystem::create_directories(file.parent_path());
    std::string content(bytes, '\0');
    for (size_t i = 0; i < bytes; ++i) content[i] = ByteAt(i);
    std::ofstream(file, std::ios::binary) << content;
  }

  // False, with the test skipped or failed, if there is no mount.
  bool Mount(const std::vector<std::string>& flags) {
    if (mount_ != nullptr) {
      EXPECT_TRUE(mount_->Unmount().ok());
    }
    auto mount = SlowFsMount::Create(source_, flags);
    if (mount.ok()) {
      mount_ = *std::move(mount);
      return true;
    }
    if (!absl::IsUnavailable(mount.status())) ADD_FAILURE() << mount.status();
    skip_reason_ = std::string(mount.status().message());
    return false;
  }

  std::string Path(const std::string& name) const { return mount_->path() + "/" + name; }
  SlowFsReport Report() { return mount_->Report().value(); }

  std::string source_;
  std::string skip_reason_;
  std::unique_ptr<SlowFsMount> mount_;
};

#define MOUNT_OR_SKIP(...) \
  if (!Mount({__VA_ARGS__})) GTEST_SKIP() << skip_reason_

TEST_F(SlowFsTest, ShowsTheSourceAndNothingElse) {
  MakeFile("a", 10000);
  MakeFile("folder/inner/b", 0);
  MOUNT_OR_SKIP();
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(mount_->path())) {
    names.insert(entry.path().lexically_relative(mount_->path()).string());
  }
  EXPECT_EQ(names, (std::set<std::string>{"a", "folder", "folder/inner", "folder/inner/b"}));
  EXPECT_EQ(std::filesystem::file_size(Path("a")), 10000u);
  EXPECT_EQ(open(Path("c").c_str(), O_RDONLY), -1);
  EXPECT_EQ(errno, ENOENT);
  EXPECT_EQ(open(Path("a").c_str(), O_RDWR), -1);
  EXPECT_EQ(errno, EROFS);
}

TEST_F(SlowFsTest, ManyFilesInOneFolder) {
  std::set<std::string> expected, found;
  for (int i = 0; i < 1000; ++i) {
    const std::string name = absl::StrCat("a-name-that-is-long-enough-to-need-several-calls-", i);
    expected.insert(name);
    MakeFile(name, 1);
  }
  MOUNT_OR_SKIP();
  for (const auto& entry : std::filesystem::directory_iterator(mount_->path())) {
    EXPECT_TRUE(found.insert(entry.path().filename().string()).second) << entry;
  }
  EXPECT_EQ(found, expected);
}

TEST_F(SlowFsTest, CountsPerObject) {
  MakeFile("a", 20 * kPageBytes);
  MakeFile("folder/b", 3000);
  MOUNT_OR_SKIP("--latency-ms=0.1", "--jitter=1", "--meta-latency-ms=0.1");
  {
    const File a(Path("a")), again(Path("a")), b(Path("folder/b"));
    for (size_t i = 0; i < 20; ++i) EXPECT_EQ(a.Read(i * kPageBytes, kPageBytes), kPageBytes);
    EXPECT_EQ(again.Read(100, 200), 200);
    EXPECT_EQ(b.Read(0, 10000), 3000);
    EXPECT_EQ(b.Read(3000, 10), 0);
  }
  const SlowFsReport report = Report();
  ASSERT_EQ(report.objects.size(), 2u);
  EXPECT_EQ(report.objects.at("a").opens, 2);
  EXPECT_EQ(report.objects.at("a").reads, 21);
  EXPECT_EQ(report.objects.at("a").bytes, 20 * kPageBytes + 200);
  EXPECT_EQ(report.objects.at("folder/b").opens, 1);
  EXPECT_EQ(report.objects.at("folder/b").bytes, 3000);
  EXPECT_EQ(report.total.bytes, 20 * kPageBytes + 200 + 3000);
  EXPECT_EQ(report.total.errors, 0);
  EXPECT_EQ(report.in_flight, 0);
  EXPECT_EQ(report.in_flight_max, 1);
}

TEST_F(SlowFsTest, ReadsComeHereAgainUnlessCached) {
  MakeFile("a", 16 * kPageBytes);
  for (const bool cached : {false, true}) {
    MOUNT_OR_SKIP(cached ? "--cached" : "--seed=0");
    const File a(Path("a"));
    for (int i = 0; i < 3; ++i) EXPECT_EQ(a.Read(0, 16 * kPageBytes), 16 * kPageBytes);
    EXPECT_EQ(Report().total.bytes, (cached ? 1 : 3) * 16 * kPageBytes);
  }
}

// None of these reads ends before the file system has all of them.
TEST_F(SlowFsTest, ReadsOfManyThreadsAreUnderWayTogether) {
  constexpr size_t kReads = 64;
  MakeFile("a", kReads * kPageBytes);
  MOUNT_OR_SKIP(absl::StrCat("--hold=", kReads), "--latency-ms=1");
  const File a(Path("a"));
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kReads; ++i) {
    threads.emplace_back([&a, i] { EXPECT_EQ(a.Read(i * kPageBytes, kPageBytes), kPageBytes); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Report().in_flight_max, kReads);
}

// The same without a thread each, as asynchronous reads that the kernel counts as background.
TEST_F(SlowFsTest, AsynchronousReadsAreUnderWayTogether) {
  constexpr size_t kReads = 512;
  MakeFile("a", kReads * kPageBytes);
  MOUNT_OR_SKIP(absl::StrCat("--hold=", kReads));
  aio_context_t context = 0;
  if (syscall(SYS_io_setup, kReads, &context) != 0) GTEST_SKIP() << "io_setup is refused";
  const File a(Path("a"), O_RDONLY | O_DIRECT);
  auto* const memory = static_cast<char*>(std::aligned_alloc(kPageBytes, kReads * kPageBytes));
  std::vector<iocb> reads(kReads);
  for (size_t i = 0; i < kReads; ++i) {
    reads[i].aio_lio_opcode = IOCB_CMD_PREAD;
    reads[i].aio_fildes = static_cast<uint32_t>(a.fd());
    reads[i].aio_buf = reinterpret_cast<uint64_t>(memory + i * kPageBytes);
    reads[i].aio_nbytes = kPageBytes;
    reads[i].aio_offset = static_cast<int64_t>(i * kPageBytes);
    iocb* one = &reads[i];
    ASSERT_EQ(syscall(SYS_io_submit, context, 1, &one), 1);
  }
  std::vector<io_event> events(kReads);
  ASSERT_EQ(syscall(SYS_io_getevents, context, kReads, kReads, events.data(), nullptr), kReads);
  for (const io_event& event : events) EXPECT_EQ(event.res, static_cast<int64_t>(kPageBytes));
  size_t wrong = 0;
  for (size_t i = 0; i < kReads * kPageBytes; ++i) wrong += memory[i] != ByteAt(i) ? 1 : 0;
  EXPECT_EQ(wrong, 0u);
  EXPECT_EQ(Report().in_flight_max, kReads);
  syscall(SYS_io_destroy, context);
  std::free(memory);
}

constexpr size_t kPages = 200;

// The pages whose first read fails with EIO.
std::set<size_t> FailingPages(const File& file) {
  std::set<size_t> failing;
  for (size_t page = 0; page < kPages; ++page) {
    if (file.Read(page * kPageBytes, kPageBytes) >= 0) continue;
    EXPECT_EQ(errno, EIO);
    failing.insert(page);
  }
  return failing;
}

TEST_F(SlowFsTest, ErrorsFollowTheSeedAndPass) {
  MakeFile("a", kPages * kPageBytes);
  std::vector<std::set<size_t>> failing;
  for (const int seed : {1, 1, 2}) {
    MOUNT_OR_SKIP("--fault=eio:0.2", absl::StrCat("--seed=", seed));
    const File a(Path("a"));
    failing.push_back(FailingPages(a));
    int64_t errors = static_cast<int64_t>(failing.back().size());
    for (const size_t page : failing.back()) {
      int attempts = 0;
      while (a.Read(page * kPageBytes, kPageBytes) < 0 && attempts < 100) ++attempts;
      EXPECT_LT(attempts, 100) << "page " << page;
      errors += attempts;
    }
    EXPECT_EQ(Report().total.errors, errors);
  }
  EXPECT_GT(failing[0].size(), 10u);
  EXPECT_EQ(failing[0], failing[1]);
  EXPECT_NE(failing[0], failing[2]);
}

TEST_F(SlowFsTest, DeadPagesStayDead) {
  MakeFile("a", kPages * kPageBytes);
  MOUNT_OR_SKIP("--fault=dead:0.1");
  const File a(Path("a"));
  const std::set<size_t> failing = FailingPages(a);
  EXPECT_GT(failing.size(), 2u);
  EXPECT_EQ(FailingPages(a), failing);
}

TEST_F(SlowFsTest, ShortReadsGoOnWhereTheyEnded) {
  MakeFile("a", kPages * kPageBytes);
  MOUNT_OR_SKIP("--fault=short:0.5");
  const File a(Path("a"));
  size_t at = 0, short_reads = 0;
  while (at < kPages * kPageBytes) {
    const ssize_t got = a.Read(at, kPageBytes);
    ASSERT_GT(got, 0);
    short_reads += static_cast<size_t>(got) < kPageBytes ? 1 : 0;
    at += static_cast<size_t>(got);
  }
  EXPECT_GT(short_reads, 10u);
}

TEST_F(SlowFsTest, AFileThatIsTruncatedWhileItIsRead) {
  MakeFile("a", kPages * kPageBytes);
  MOUNT_OR_SKIP("--fault=truncate:0.05");
  const File a(Path("a"));
  size_t page = 0;
  while (page < kPages && a.Read(page * kPageBytes, kPageBytes) == kPageBytes) ++page;
  ASSERT_LT(page, kPages) << "no read has truncated it";
  const size_t end = page * kPageBytes + kPageBytes / 2;
  EXPECT_EQ(std::filesystem::file_size(Path("a")), end);
  EXPECT_EQ(a.Read(end, kPageBytes), 0);
  EXPECT_EQ(a.Read((kPages - 1) * kPageBytes, kPageBytes), 0);
  EXPECT_EQ(a.Read(0, kPageBytes), kPageBytes);
}

TEST_F(SlowFsTest, UnmountsUnderAReaderAndLeavesNothing) {
  MakeFile("a", 10 * kPageBytes);
  MOUNT_OR_SKIP("--hold=1000");
  const std::string path = mount_->path();
  const File a(Path("a"));
  std::thread reader([&a] { static_cast<void>(a.Read(0, kPageBytes)); });  // is let go
  while (Report().in_flight == 0) std::this_thread::yield();
  EXPECT_TRUE(mount_->Unmount().ok());
  reader.join();
  mount_.reset();
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(SlowFsTest, BadFlagsAreAnError) {
  MOUNT_OR_SKIP();
  for (const char* flag : {"--fault=fire:1", "--tail-percent=101", "--what"}) {
    EXPECT_EQ(SlowFsMount::Create(source_, {flag}).status().code(),
              absl::StatusCode::kInvalidArgument)
        << flag;
  }
  EXPECT_EQ(SlowFsMount::Create(source_ + "/none", {}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace sluice::fuse
