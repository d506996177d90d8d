// Files that appear whole or not at all.
#include "storage/file/atomic_file.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "main/fails.h"
#include "main/own_folder.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class AtomicFileTest : public ::testing::Test {
 protected:
  std::string Path(const std::string& name) const { return folder_.path() / name; }
  std::string Content(const std::string& name) const { return FileText(Path(name)); }
  std::vector<std::string> Names() const { return NamesIn(folder_.path()); }

  const OwnFolder folder_;
};

TEST_F(AtomicFileTest, TheNameMeansTheOldFileUntilTheCommit) {
  ASSERT_TRUE(WriteFileAtomically(Path("a"), "old").ok());
  auto file = AtomicFile::Create(Path("a")).value();
  ASSERT_TRUE(file.WriteAt(4, "name").ok());
  ASSERT_TRUE(file.WriteAt(0, "new ").ok());
  EXPECT_EQ(Content("a"), "old");
  ASSERT_TRUE(file.Commit().ok());
  EXPECT_EQ(Content("a"), "new name");
  EXPECT_THAT(Names(), ElementsAre("a"));
}

TEST_F(AtomicFileTest, GapsReadAsZerosAndTheLengthCanBeSet) {
  auto file = AtomicFile::Create(Path("a")).value();
  ASSERT_TRUE(file.WriteAt(2, "xyz").ok());
  ASSERT_TRUE(file.Resize(4).ok());
  ASSERT_TRUE(file.CommitUnsynced().ok());
  EXPECT_EQ(Content("a"), std::string("\0\0xy", 4));
}

TEST_F(AtomicFileTest, WithoutACommitNothingIsLeft) {
  {
    auto file = AtomicFile::Create(Path("a")).value();
    ASSERT_TRUE(file.WriteAt(0, "x").ok());
    EXPECT_EQ(Names().size(), 1u);
    EXPECT_EQ(fs::path(file.temporary()).parent_path(), folder_.path());
  }
  EXPECT_THAT(Names(), IsEmpty());
}

TEST_F(AtomicFileTest, MovingPassesTheTemporaryOn) {
  auto file = AtomicFile::Create(Path("a")).value();
  AtomicFile other = std::move(file);
  {
    auto second = AtomicFile::Create(Path("b")).value();
    other = std::move(second);  // drops the temporary for "a"
    EXPECT_EQ(Names().size(), 1u);
  }
  ASSERT_TRUE(other.Commit().ok());
  EXPECT_THAT(Names(), ElementsAre("b"));
}

TEST_F(AtomicFileTest, OtherProcessesWriteRangesOfIt) {
  auto file = AtomicFile::Create(Path("a")).value();
  ASSERT_TRUE(file.Resize(12).ok());
  std::vector<pid_t> children;
  for (int i = 0; i < 3; ++i) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      auto part = AtomicFile::OpenTemporary(file.temporary(), 12);
      const bool ok = part.ok() && part->WriteAt(i * 4, "part").ok() && part->Sync().ok();
      { const AtomicFile closed = *std::move(part); }
      _exit(ok ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int state = 0;
    ASSERT_EQ(waitpid(child, &state, 0), child);
    EXPECT_EQ(state, 0);
  }
  ASSERT_TRUE(file.Commit().ok());
  EXPECT_EQ(Content("a"), "partpartpart");
}

TEST_F(AtomicFileTest, OpensNothingElseOfThatName) {
  ASSERT_TRUE(WriteFileAtomically(Path("theirs"), "theirs").ok());
  ASSERT_EQ(symlink("theirs", Path("link").c_str()), 0);
  ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0600), 0);
  for (const char* name : {"link", "pipe"}) {
    EXPECT_FALSE(AtomicFile::OpenTemporary(Path(name), 6).ok()) << name;
  }
  EXPECT_TRUE(AtomicFile::OpenTemporary(Path("theirs"), 6).ok());
  EXPECT_EQ(AtomicFile::OpenTemporary(Path("theirs"), 7).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST_F(AtomicFileTest, TemporariesAreKnownByTheirNames) {
  for (const std::string& name : {std::string("a"), std::string("b.c"), std::string(255, 'a')}) {
    const auto file = AtomicFile::Create(Path(name)).value();
    const std::string temporary = fs::path(file.temporary()).filename();
    EXPECT_TRUE(IsTemporaryOf(temporary, name)) << temporary;
    EXPECT_FALSE(IsTemporaryOf(temporary, "x")) << temporary;
    EXPECT_FALSE(IsTemporaryOf(name, name));
    EXPECT_FALSE(IsTemporaryOf("." + name + ".tmp", name));
  }
}

TEST_F(AtomicFileTest, TwoOfOneNameDoNotMeet) {
  auto one = AtomicFile::Create(Path("a"));
  auto two = AtomicFile::Create(Path("a"));
  ASSERT_TRUE(one.ok() && two.ok());
  EXPECT_NE(one->temporary(), two->temporary());
  ASSERT_TRUE(one->WriteAt(0, "one").ok());
  ASSERT_TRUE(two->WriteAt(0, "two").ok());
  ASSERT_TRUE(two->Commit().ok());
  EXPECT_EQ(Content("a"), "two");
  ASSERT_TRUE(one->Commit().ok());
  EXPECT_EQ(Content("a"), "one");
}

TEST_F(AtomicFileTest, HasThePermissionsOfANewFile) {
  const mode_t old = umask(027);
  const absl::Status status = WriteFileAtomically(Path("a"), "x");
  umask(old);
  ASSERT_TRUE(status.ok());
  struct stat info = {};
  ASSERT_EQ(stat(Path("a").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0640u);
}

TEST_F(AtomicFileTest, LongNamesHaveShorterTemporaries) {
  EXPECT_TRUE(WriteFileAtomically(Path(std::string(255, 'a')), "x").ok());
}

TEST_F(AtomicFileTest, ErrorsNameTheFile) {
  const auto nowhere = AtomicFile::Create(Path("none/a"));
  EXPECT_THAT(nowhere.status(), Fails(absl::StatusCode::kNotFound, "none/a"));
  EXPECT_EQ(AtomicFile::OpenTemporary(Path("none"), 0).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(AtomicFile::Create(Path("")).status().code(), absl::StatusCode::kInvalidArgument);
  // A directory cannot be replaced, and the temporary does not stay.
  ASSERT_TRUE(fs::create_directory(Path("d")));
  const absl::Status status = WriteFileAtomically(Path("d"), "x");
  EXPECT_THAT(std::string(status.message()), HasSubstr("cannot rename"));
  EXPECT_THAT(Names(), ElementsAre("d"));
}

}  // namespace
}  // namespace sluice
