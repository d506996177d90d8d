// What a directory has of a checkpoint, and how files of a new one come to be in it.
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "main/fails.h"
#include "main/own_folder.h"
#include "session/checkpoint/checkpoint_contents.h"
#include "session/checkpoint/checkpoint_files.h"

namespace sluice {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kIndex = "model.safetensors.index.json";
constexpr const char* kLock = ".sluice-save.lock";

class CheckpointDirectoryTest : public testing::Test {
 protected:
  std::string PathOf(const std::string& name) const { return absl::StrCat(path_, "/", name); }
  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(PathOf(name), std::ios::binary) << text;
  }
  std::string Read(const std::string& name) const { return FileText(PathOf(name)); }
  // All but the lock, in order.
  std::vector<std::string> Names() const {
    std::vector<std::string> names = NamesIn(path_);
    std::erase(names, kLock);
    return names;
  }
  absl::StatusOr<CheckpointContents> Look() {
    return LookForCheckpoint({"file", path_}, CheckpointOptions(), stop_);
  }
  // Files "model-0000i-of-0000n.safetensors", or one, of 10 bytes each, which begin with `header`.
  static CheckpointFileLayout LayoutOf(int files, const std::string& header,
                                       const std::string& save_id = "0123456789abcdef") {
    CheckpointFileLayout layout;
    CheckpointIndex index;
    index.save_id = save_id;
    for (int file = 0; file < files; ++file) {
      const std::string name =
          files == 1 ? "model.safetensors"
                     : absl::StrCat("model-0000", file + 1, "-of-0000", files, ".safetensors");
      layout.files.push_back({name, header, 10});
      index.files.push_back(name);
      index.tensors.push_back({absl::StrCat("t", file), file});
    }
    if (files > 1) layout.index = index;
    return layout;
  }
  absl::Status Save(const CheckpointFileLayout& layout) const {
    CheckpointFiles files;
    if (absl::Status status = files.Create(path_, layout); !status.ok()) return status;
    return files.Commit();
  }

  const OwnFolder folder_;
  const std::string path_ = folder_.path().string();
  WorkStop stop_ = false;
};

using CheckpointContentsTest = CheckpointDirectoryTest;
using CheckpointFilesTest = CheckpointDirectoryTest;

TEST_F(CheckpointDirectoryTest, NothingCountsBesideTheFileThatHasAll) {
  Write("model.safetensors", "");
  // Some of them come before it, in whatever order the file system has names.
  for (int i = 0; i < 20; ++i) {
    std::filesystem::create_symlink("gone", PathOf(absl::StrCat("link", i, ".safetensors")));
    Write(absl::StrCat("\xff", i, ".safetensors"), "");
  }
  const auto contents = Look().value();
  EXPECT_THAT(contents.files, ElementsAre("model.safetensors"));
  std::filesystem::remove(PathOf("model.safetensors"));
  std::filesystem::create_symlink("gone", PathOf("model.safetensors"));
  EXPECT_THAT(std::string(Look().status().message()), HasSubstr("\"model.safetensors\" is a link"));
  std::filesystem::create_symlink("gone", PathOf(kIndex));
  EXPECT_THAT(std::string(Look().status().message()),
              HasSubstr("\"model.safetensors.index.json\" is a link to \"gone\""));
}

TEST_F(CheckpointContentsTest, AnIndexCountsBeforeFiles) {
  Write("model.safetensors", "x");
  Write(kIndex, "{}");
  const auto contents = Look().value();
  EXPECT_EQ(contents.index_text, "{}");
  EXPECT_TRUE(contents.index_file.has_value());
  EXPECT_THAT(contents.files, IsEmpty());
}

TEST_F(CheckpointContentsTest, OtherwiseAllFilesCountButShardsAndHiddenOnes) {
  for (const char* name : {"b.safetensors", "a.safetensors", ".c.safetensors", "d.bin",
                           "model-00001-of-00002.safetensors"}) {
    Write(name, "x");
  }
  const auto contents = Look().value();
  EXPECT_THAT(contents.files, ElementsAre("a.safetensors", "b.safetensors"));
}

TEST_F(CheckpointContentsTest, ADirectoryWithoutACheckpointSaysWhatItHas) {
  EXPECT_THAT(std::string(Look().status().message()), HasSubstr("and no *.safetensors"));
  Write("model-00001-of-00002.safetensors", "x");
  const absl::Status status = Look().status();
  EXPECT_THAT(status, Fails(absl::StatusCode::kNotFound, "a save that did not end"));
}

TEST_F(CheckpointContentsTest, AnotherIndexIsNoticed) {
  const SourceAddress address = {"file", path_};
  const auto same = [&](const CheckpointContents& contents) {
    const auto is_same = HasSameIndex(address, contents, CheckpointOptions(), stop_);
    EXPECT_TRUE(is_same.ok()) << is_same.status();
    return is_same.value_or(false);
  };
  Write("model.safetensors", "x");
  const auto none = Look().value();
  EXPECT_TRUE(same(none));
  Write(kIndex, "{}");
  EXPECT_FALSE(same(none));
  const auto one = Look().value();
  EXPECT_TRUE(same(one));
  Write("new", "{}");
  std::filesystem::rename(PathOf("new"), PathOf(kIndex));
  EXPECT_FALSE(same(one));
  std::filesystem::remove(PathOf(kIndex));
  EXPECT_FALSE(same(one));
}

TEST_F(CheckpointFilesTest, FilesGetTheirNamesAtTheEnd) {
  CheckpointFiles files;
  EXPECT_FALSE(files.begun());
  ASSERT_TRUE(files.Create(path_, LayoutOf(2, "head")).ok());
  EXPECT_TRUE(files.begun());
  ASSERT_EQ(files.temporaries().size(), 2u);  // the index is no rank's to write
  for (const std::string& name : Names()) EXPECT_EQ(name[0], '.') << name;
  std::fstream(files.temporaries()[1], std::ios::in | std::ios::out) << "HEADbody";
  ASSERT_TRUE(files.Commit().ok());
  EXPECT_THAT(Names(), ElementsAre("model-00001-of-00002.safetensors",
                                   "model-00002-of-00002.safetensors", kIndex));
  EXPECT_EQ(Read("model-00001-of-00002.safetensors"), "head" + std::string(6, '\0'));
  EXPECT_EQ(Read("model-00002-of-00002.safetensors"), "HEADbody" + std::string(2, '\0'));
  EXPECT_THAT(Read(kIndex), HasSubstr("model-00002-of-00002.safetensors"));
}

TEST_F(CheckpointFilesTest, WhatWasNotCommittedLeavesNothing) {
  const std::string inner = PathOf("new");
  {
    CheckpointFiles files;
    ASSERT_TRUE(files.Create(inner, LayoutOf(1, "head")).ok());
    EXPECT_TRUE(std::filesystem::exists(files.temporaries()[0]));
  }
  EXPECT_FALSE(std::filesystem::exists(inner));
}

TEST_F(CheckpointFilesTest, TwoSavesAtOnceAreRefused) {
  CheckpointFiles one;
  ASSERT_TRUE(one.Create(path_, LayoutOf(1, "one")).ok());
  CheckpointFiles two;
  const absl::Status status = two.Create(path_, LayoutOf(1, "two"));
  EXPECT_THAT(status, Fails(absl::StatusCode::kFailedPrecondition, "another save into"));
  one.Discard();
  EXPECT_TRUE(two.Create(path_, LayoutOf(1, "two")).ok());
}

TEST_F(CheckpointFilesTest, ANewCheckpointTakesTheOldOnesPlace) {
  ASSERT_TRUE(Save(LayoutOf(1, "single")).ok());
  Write("mine.txt", "kept");
  ASSERT_TRUE(Save(LayoutOf(2, "first")).ok());
  EXPECT_THAT(Names(), ElementsAre("mine.txt", "model-00001-of-00002.safetensors",
                                   "model-00002-of-00002.safetensors", kIndex));
  // Its names are taken, so that the next one has a label.
  ASSERT_TRUE(Save(LayoutOf(2, "again", "fedcba9876543210")).ok());
  EXPECT_THAT(Names(), ElementsAre("mine.txt", "model-fedcba98-00001-of-00002.safetensors",
                                   "model-fedcba98-00002-of-00002.safetensors", kIndex));
  ASSERT_TRUE(Save(LayoutOf(1, "last")).ok());
  EXPECT_THAT(Names(), ElementsAre("mine.txt", "model.safetensors"));
  EXPECT_EQ(Read("model.safetensors").substr(0, 4), "last");
}

TEST_F(CheckpointFilesTest, TemporariesOfSavesThatWereKilledGo) {
  auto left = AtomicFile::Create(PathOf("model.safetensors")).value();
  Write(".mine", "kept");
  ASSERT_TRUE(Save(LayoutOf(1, "head")).ok());
  EXPECT_FALSE(std::filesystem::exists(left.temporary()));
  EXPECT_THAT(Names(), ElementsAre(".mine", "model.safetensors"));
}

}  // namespace
}  // namespace sluice
