// Which file is read, whether it is still the one, locks of directories, and small whole files.
#include "storage/file/file_identity.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "main/fails.h"
#include "net/fd.h"
#include "storage/file/directory_lock.h"
#include "storage/file/file_source.h"
#include "storage/file/mmap_source.h"
#include "storage/file/whole_file.h"
#include "storage/file_storage.h"
#include "storage/source_run.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;

FileIdentity IdentityOf(const std::string& path) {
  const Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  return IdentifyFile(fd.get()).value();
}

TEST(FileIdentityTest, TellsOtherBytesFromOtherNames) {
  const FileStorage storage;
  storage.Write("a", "1234");
  const FileIdentity before = IdentityOf(storage.Path("a"));
  EXPECT_EQ(before, IdentityOf(storage.Path("a")));
  EXPECT_EQ(ParseIdentityText(IdentityText(before)), before);
  EXPECT_FALSE(ParseIdentityText("1 2 3").has_value());
  fs::create_hard_link(storage.Path("a"), storage.Path("b"));
  EXPECT_TRUE(SameBytes(before, IdentityOf(storage.Path("b"))));
  fs::remove(storage.Path("b"));
  storage.Write("b", "1234");
  EXPECT_FALSE(SameBytes(before, IdentityOf(storage.Path("b"))));
  // Numbers of other hosts say nothing.
  FileIdentity elsewhere = before;
  elsewhere.host ^= 1;
  elsewhere.device += 1;
  elsewhere.inode += 1;
  EXPECT_TRUE(SameBytes(before, elsewhere));
  elsewhere.written_ns += 1;
  EXPECT_FALSE(SameBytes(before, elsewhere));
  FileIdentity longer = before;
  longer.bytes += 1;
  EXPECT_FALSE(SameBytes(before, longer));
  EXPECT_FALSE((*IdentifyPath(storage.Path("none"))).has_value());
}

std::unique_ptr<Source> MakeSource(int kind, const FileStorage& storage,
                                   std::shared_ptr<FileIdentities> identities) {
  const std::vector<std::string> names = {"a", "b"};
  if (kind == 2) {
    auto source = MakeMmapSource(storage.directory(), names,
                                 {.files_max = 1, .identities = std::move(identities)});
    return source.ok() ? *std::move(source) : nullptr;
  }
  const FileSourceOptions options = {.access = FileAccess::kBuffered,
                                     .engine = kind == 0 ? FileEngine::kBest : FileEngine::kThreads,
                                     .open_files_max = 1,
                                     .identities = std::move(identities)};
  auto source = MakeFileSource(storage.directory(), names, options);
  return source.ok() ? *std::move(source) : nullptr;
}

// What a read of object `object` ends with.
absl::Status ReadOne(Source* source, int object) {
  SourceRun run(source);
  const uint64_t cookie = run.Read(object, 0, 4);
  EXPECT_TRUE(run.UntilAllEnded());
  return run.Outcome(cookie);
}

TEST(FileIdentityTest, SourcesReadTheFilesThatWereMeant) {
  for (const int kind : {0, 1, 2}) {
    const FileStorage storage;
    storage.Write("a", "1234");
    storage.Write("b", "5678");
    const auto learned = std::make_shared<FileIdentities>(std::vector<std::string>{"a", "b"});
    std::unique_ptr<Source> source = MakeSource(kind, storage, learned);
    ASSERT_NE(source, nullptr);
    for (const int object : {0, 1, 0}) EXPECT_TRUE(ReadOne(source.get(), object).ok());
    source.reset();
    EXPECT_TRUE(learned->outcome().ok()) << learned->outcome();
    const std::vector<FileIdentity> known = {*learned->known(0), *learned->known(1)};
    EXPECT_EQ(known[1], IdentityOf(storage.Path("b")));
    // Another file of that name, and none.
    storage.Write("c", "9999");
    fs::rename(storage.Path("c"), storage.Path("a"));
    fs::remove(storage.Path("b"));
    const auto meant = std::make_shared<FileIdentities>(std::vector<std::string>{"a", "b"}, known);
    source = MakeSource(kind, storage, meant);
    for (const int object : {0, 1}) {
      EXPECT_THAT(ReadOne(source.get(), object),
                  Fails(absl::StatusCode::kDataLoss, object == 0 ? "a was repl" : "b was rem"));
    }
    source.reset();
    EXPECT_TRUE(absl::IsDataLoss(meant->outcome()));
  }
}

TEST(FileIdentityTest, AFileThatIsWrittenToIsNoticedWhenItIsClosed) {
  for (const int kind : {0, 1, 2}) {
    for (const bool is_evicted : {false, true}) {
      const FileStorage storage;
      storage.Write("a", "1234");
      storage.Write("b", "5678");
      const auto identities = std::make_shared<FileIdentities>(std::vector<std::string>{"a", "b"});
      std::unique_ptr<Source> source = MakeSource(kind, storage, identities);
      ASSERT_NE(source, nullptr);
      EXPECT_TRUE(ReadOne(source.get(), 0).ok());
      const Fd fd(open(storage.Path("a").c_str(), O_WRONLY | O_CLOEXEC));
      ASSERT_EQ(pwrite(fd.get(), "9999", 4, 0), 4);
      if (is_evicted) {
        EXPECT_TRUE(ReadOne(source.get(), 1).ok());
        EXPECT_TRUE(absl::IsDataLoss(identities->outcome()));
      }
      source.reset();
      EXPECT_THAT(identities->outcome(), Fails(absl::StatusCode::kDataLoss, "a was replaced or"));
    }
  }
}

TEST(DirectoryLockTest, IsOneProcesss) {
  const FileStorage storage;
  auto lock = DirectoryLock::Take(storage.directory(), ".lock").value();
  EXPECT_TRUE(lock.held());
  const absl::Status second = DirectoryLock::Take(storage.directory(), ".lock").status();
  EXPECT_TRUE(absl::IsFailedPrecondition(second)) << second;
  lock.Release();
  EXPECT_FALSE(fs::exists(storage.Path(".lock")));
  // A process that is killed leaves the file, and no lock.
  const pid_t child = fork();
  if (child == 0) {
    const absl::StatusOr<DirectoryLock> own = DirectoryLock::Take(storage.directory(), ".lock");
    kill(getpid(), own.ok() ? SIGKILL : SIGTERM);
  }
  int state = 0;
  ASSERT_EQ(waitpid(child, &state, 0), child);
  ASSERT_TRUE(WIFSIGNALED(state) && WTERMSIG(state) == SIGKILL);
  EXPECT_TRUE(fs::exists(storage.Path(".lock")));
  {
    const absl::StatusOr<DirectoryLock> next = DirectoryLock::Take(storage.directory(), ".lock");
    EXPECT_TRUE(next.ok()) << next.status();
  }
  EXPECT_FALSE(fs::exists(storage.Path(".lock")));
  // Nobody is led elsewhere.
  storage.Write("theirs", "theirs");
  fs::create_symlink("theirs", storage.Path(".lock"));
  EXPECT_FALSE(DirectoryLock::Take(storage.directory(), ".lock").ok());
  EXPECT_EQ(DirectoryLock::Take(storage.Path("none"), ".lock").status().code(),
            absl::StatusCode::kNotFound);
}

TEST(WholeFileTest, ReadsAFileWithinItsLimit) {
  const FileStorage storage;
  const std::string content = SourceContent(1, 200'000);
  storage.Write("a", content);
  const auto read = ReadWholeFile(storage.Path("a"), 200'000).value();
  EXPECT_EQ(read.text, content);
  EXPECT_EQ(read.identity, IdentityOf(storage.Path("a")));
  EXPECT_TRUE(absl::IsResourceExhausted(ReadWholeFile(storage.Path("a"), 199'999).status()));
  storage.Write("empty", "");
  EXPECT_EQ(ReadWholeFile(storage.Path("empty"), 0)->text, "");
  EXPECT_TRUE(absl::IsNotFound(ReadWholeFile(storage.Path("none"), 10).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(ReadWholeFile(storage.directory(), 10).status()));
  ASSERT_EQ(mkfifo(storage.Path("pipe").c_str(), 0600), 0);
  EXPECT_TRUE(absl::IsInvalidArgument(ReadWholeFile(storage.Path("pipe"), 10).status()));
  // The kernel says of such a file that it is empty.
  EXPECT_THAT(ReadWholeFile("/proc/self/status", 1 << 20)->text, testing::HasSubstr("Pid:"));
}

}  // namespace
}  // namespace sluice
