// Saves and loads that meet in one directory, and what else may be found there.
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <barrier>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "checkpoint/checkpoint_dir.h"
#include "checkpoint/file_calls.h"
#include "checkpoint/two_rounds.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "main/fails.h"
#include "session/world.h"
#include "sluice/session.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;
using checkpoint_test::CheckpointDir;
using checkpoint_test::FileCall;
using checkpoint_test::FileCalls;
using checkpoint_test::kMixture;
using checkpoint_test::kNewer;
using checkpoint_test::kNothing;
using checkpoint_test::kOlder;
using checkpoint_test::kOneFile;
using checkpoint_test::LoadRound;
using checkpoint_test::SaveRound;
using checkpoint_test::TensorsPerFile;
using testing::ElementsAre;
using testing::HasSubstr;

// A process that saves both rounds in turn until the file `stop` is there.
pid_t StartSaver(const std::string& place, const std::string& stop, int64_t shard_bytes_max) {
  const pid_t child = fork();
  if (child != 0) return child;
  bool good = true;
  for (int i = 0; good && !fs::exists(stop); ++i) {
    const absl::Status status =
        SaveRound(1, i % 2 == 0 ? kOlder : kNewer, place, shard_bytes_max, i % 2 == 1);
    good = status.ok() || absl::IsFailedPrecondition(status);
  }
  _exit(good ? 0 : 1);
}

struct Meeting {
  const char* name;
  std::vector<int64_t> savers;  // the shard_bytes_max of each
  const char* scheme;
};

class BesideTest : public testing::TestWithParam<Meeting> {};
INSTANTIATE_TEST_SUITE_P(
    Meetings, BesideTest,
    testing::Values(Meeting{"OneFile", {kOneFile}, "buffered:"},
                    Meeting{"OneFilePastTheCache", {kOneFile}, "file:"},
                    Meeting{"OneFileMapped", {kOneFile}, "mmap:"},
                    Meeting{"ThreeFiles", {TensorsPerFile(2)}, "buffered:"},
                    Meeting{"SixFilesMapped", {TensorsPerFile(1)}, "mmap:"},
                    Meeting{"TwoSavers", {TensorsPerFile(2), TensorsPerFile(2)}, "buffered:"},
                    Meeting{
                        "TwoSaversOfDifferentNumbers", {kOneFile, TensorsPerFile(3)}, "buffered:"}),
    [](const testing::TestParamInfo<Meeting>& meeting) { return std::string(meeting.param.name); });

TEST_P(BesideTest, ALoadGivesOneOfTheCheckpointsOrAnError) {
  constexpr int kLoads = 60;
  const CheckpointDir dir;
  const std::string place = dir.path() + "/checkpoint";
  ASSERT_TRUE(SaveRound(1, kOlder, place, GetParam().savers[0]).ok());
  std::vector<pid_t> savers;
  for (const int64_t shard_bytes_max : GetParam().savers) {
    savers.push_back(StartSaver(place, dir.path() + "/stop", shard_bytes_max));
  }
  std::map<int64_t, int> found;
  for (int i = 0; i < kLoads; ++i) {
    absl::Status status;
    const int64_t round = LoadRound(2, GetParam().scheme + place, &status);
    ++found[round];
    EXPECT_NE(round, kMixture);
    if (round != kNothing) continue;
    EXPECT_TRUE(absl::IsDataLoss(status) || absl::IsUnavailable(status)) << status;
  }
  std::ofstream(dir.path() + "/stop") << "now";
  for (const pid_t saver : savers) {
    int state = 0;
    ASSERT_EQ(waitpid(saver, &state, 0), saver);
    EXPECT_EQ(state, 0);
  }
  // How many is a matter of the machine: a saver that is fast replaces each under the load.
  RecordProperty("errors", found[kNothing]);
  absl::Status status;
  EXPECT_GT(LoadRound(2, GetParam().scheme + place, &status), 0) << status;
}

TEST(BesideTest, OfTwoSaversOneHearsOfTheOther) {
  const CheckpointDir dir;
  const std::string place = dir.path() + "/checkpoint";
  absl::Status first;
  absl::Status second;
  std::barrier<> meeting(2);
  std::atomic<bool> met = false;
  {
    const FileCalls seen(
        place,
        [&](const FileCall& call) {
          if (call.kind != FileCall::Kind::kRename || met.exchange(true)) return 0;
          meeting.arrive_and_wait();  // the first is about to commit
          meeting.arrive_and_wait();  // the second has ended
          return 0;
        },
        nullptr);
    std::thread saver([&] { first = SaveRound(2, kOlder, place, TensorsPerFile(2)); });
    meeting.arrive_and_wait();
    second = SaveRound(2, kNewer, place, TensorsPerFile(2));
    meeting.arrive_and_wait();
    saver.join();
  }
  EXPECT_TRUE(first.ok()) << first;
  EXPECT_THAT(second, Fails(absl::StatusCode::kFailedPrecondition, "another save into"));
  EXPECT_THAT(std::string(second.message()), HasSubstr(absl::StrCat("process ", getpid(), " on")));
  absl::Status status;
  EXPECT_EQ(LoadRound(2, "buffered:" + place, &status), static_cast<int64_t>(kOlder)) << status;
  EXPECT_TRUE(SaveRound(2, kNewer, place, TensorsPerFile(2)).ok());
}

TEST(BesideTest, WithoutLocksShardsHaveNamesOfTheirOwn) {
  const CheckpointDir dir;
  const std::string place = dir.path() + "/checkpoint";
  const FileCalls seen(
      place, [](const FileCall& call) { return call.kind == FileCall::Kind::kLock ? ENOSYS : 0; },
      nullptr);
  for (const uint64_t round : {kOlder, kNewer}) {
    ASSERT_TRUE(SaveRound(2, round, place, TensorsPerFile(3)).ok());
    absl::Status status;
    EXPECT_EQ(LoadRound(2, "buffered:" + place, &status), static_cast<int64_t>(round)) << status;
    int shards = 0;
    for (const auto& entry : fs::directory_iterator(place)) {
      const std::string name = entry.path().filename().string();
      if (name == "model.safetensors.index.json") continue;
      ++shards;
      EXPECT_THAT(name, testing::MatchesRegex("model-[0-9a-f]{8}-0000[12]-of-00002.safetensors"));
    }
    EXPECT_EQ(shards, 2);
  }
}

// A saver that another one overtakes, before each of the calls by which it changes names.
TEST(BesideTest, WithoutLocksOfTwoSavesThatMeetOneStays) {
  constexpr uint64_t kFirst = 4;
  for (const bool sharded_first : {true, false}) {
    for (const int64_t older : {int64_t{0}, kOneFile, TensorsPerFile(3)}) {
      for (int at = 1;; ++at) {
        const CheckpointDir dir;
        const std::string place = dir.path() + "/checkpoint";
        std::atomic<int> calls{0};
        absl::Status inner;
        const FileCalls seen(
            place,
            [&](const FileCall& call) {
              if (call.kind == FileCall::Kind::kLock) return ENOSYS;
              if (call.kind != FileCall::Kind::kRename && call.kind != FileCall::Kind::kUnlink) {
                return 0;
              }
              if (++calls == at) {
                inner = SaveRound(1, kNewer, place, sharded_first ? kOneFile : TensorsPerFile(2));
              }
              return 0;
            },
            nullptr);
        calls = 1000;
        if (older > 0) {
          ASSERT_TRUE(SaveRound(1, kFirst, place, older).ok());
        }
        calls = 0;
        const absl::Status outer =
            SaveRound(1, kOlder, place, sharded_first ? TensorsPerFile(2) : kOneFile);
        if (calls < at) break;
        const std::string where = absl::StrCat(sharded_first, " ", older, " ", at, ": ",
                                               outer.ToString(), " and ", inner.ToString());
        EXPECT_TRUE(outer.ok() || absl::IsFailedPrecondition(outer)) << where;
        EXPECT_TRUE(inner.ok() || absl::IsFailedPrecondition(inner)) << where;
        absl::Status status;
        const int64_t found = LoadRound(1, "buffered:" + place, &status);
        const auto stands = [](const absl::Status& saved) {
          return saved.ok() || absl::StrContains(saved.message(), "the new checkpoint is in place");
        };
        EXPECT_TRUE((found == static_cast<int64_t>(kOlder) && stands(outer)) ||
                    (found == static_cast<int64_t>(kNewer) && stands(inner)))
            << where << " but found " << found << ": " << status;
        if (HasFailure()) return;
      }
    }
  }
}

// What a file's replacement does to a load whose ranks have opened it: `change` happens before the
// mapped read number `at`. Two nodes: ranks of one would share the mapping, and read nothing.
absl::Status LoadAndChange(const std::string& place, int at, const std::function<void()>& change,
                           int64_t* found) {
  std::atomic<int> reads{0};
  const FileCalls seen(
      place,
      [&](const FileCall& call) {
        if (call.kind == FileCall::Kind::kRead && ++reads == at) change();
        return 0;
      },
      nullptr);
  absl::Status status;
  *found = LoadRound(3, "mmap:" + place, &status);
  EXPECT_GE(reads, at);
  return status;
}

TEST(BesideTest, AFileThatChangesUnderALoadIsNamed) {
  const CheckpointDir dir;
  const std::string place = dir.path() + "/checkpoint";
  const std::string file = place + "/model.safetensors";
  ASSERT_TRUE(SaveRound(1, kNewer, dir.path() + "/other", kOneFile, true).ok());
  int noticed = 0;
  for (int at = 1; at <= 12; ++at) {
    ASSERT_TRUE(SaveRound(1, kOlder, place, kOneFile).ok());
    int64_t found = 0;
    // Another file in its place: what has it open reads on in the one that it knows.
    absl::Status status = LoadAndChange(
        place, at,
        [&] {
          fs::copy(dir.path() + "/other/model.safetensors", place + "/new");
          fs::rename(place + "/new", file);
        },
        &found);
    EXPECT_NE(found, kMixture) << at;
    if (found == kNothing) {
      EXPECT_THAT(status, Fails(absl::StatusCode::kDataLoss, "model.safetensors was replaced"));
    }
    // Other bytes in the same file: what was read before is of no use.
    ASSERT_TRUE(SaveRound(1, kOlder, place, kOneFile).ok());
    status = LoadAndChange(
        place, at,
        [&] {
          std::fstream(file, std::ios::in | std::ios::out | std::ios::binary)
              << FileText(dir.path() + "/other/model.safetensors");
        },
        &found);
    EXPECT_NE(found, kMixture) << at;
    if (found != kNothing) continue;
    EXPECT_TRUE(absl::IsDataLoss(status)) << at << ": " << status;
    ++noticed;
  }
  // The first reads may be those of a session that is being made.
  EXPECT_GE(noticed, 6);
}

TEST(BesideTest, AnotherHardLinkToAFileIsNoChangeOfIt) {
  const CheckpointDir dir;
  const std::string place = dir.path() + "/checkpoint";
  ASSERT_TRUE(SaveRound(1, kOlder, place, kOneFile).ok());
  int64_t found = 0;
  const absl::Status status = LoadAndChange(
      place, 3, [&] { fs::create_hard_link(place + "/model.safetensors", dir.path() + "/backup"); },
      &found);
  EXPECT_EQ(found, static_cast<int64_t>(kOlder)) << status;
}

TEST(BesideTest, AMixtureOfTwoSavesIsRefused) {
  const CheckpointDir dir;
  const std::string place = dir.path() + "/checkpoint";
  const std::string other = dir.path() + "/other";
  ASSERT_TRUE(SaveRound(1, kOlder, place, TensorsPerFile(3)).ok());
  ASSERT_TRUE(SaveRound(1, kNewer, other, TensorsPerFile(3)).ok());
  fs::copy_file(other + "/model-00002-of-00002.safetensors",
                place + "/model-00002-of-00002.safetensors", fs::copy_options::overwrite_existing);
  absl::Status status;
  EXPECT_EQ(LoadRound(2, "buffered:" + place, &status), kNothing);
  EXPECT_THAT(status,
              Fails(absl::StatusCode::kDataLoss, "model-00002-of-00002.safetensors is not"));
}

TEST(BesideTest, AnIndexThatIsNoFileOrTooLargeIsRefusedUnread) {
  const CheckpointDir dir;
  const std::string index = dir.path() + "/model.safetensors.index.json";
  absl::Status status;
  ASSERT_EQ(mkfifo(index.c_str(), 0600), 0);
  EXPECT_EQ(LoadRound(2, "buffered:" + dir.path(), &status), kNothing);
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  fs::remove(index);
  std::ofstream(index) << "{";
  fs::resize_file(index, uintmax_t{1} << 40);  // more than there is memory for
  EXPECT_EQ(LoadRound(2, "buffered:" + dir.path(), &status), kNothing);
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
}

TEST(BesideTest, AnyNameOfADirectoryIsTheDirectorysOwn) {
  const CheckpointDir dir;
  const std::string theirs(20'000, 'x');
  for (const char* name : {"a\nb", " 7 x", "b\n", "\xff"}) {
    const std::string place = dir.path() + "/" + name;
    std::ofstream(dir.path() + "/a") << theirs;
    for (const int64_t shard_bytes_max : {kOneFile, TensorsPerFile(2)}) {
      ASSERT_TRUE(SaveRound(2, kNewer, place, shard_bytes_max).ok()) << name;
      absl::Status status;
      EXPECT_EQ(LoadRound(2, "buffered:" + place, &status), static_cast<int64_t>(kNewer)) << status;
    }
    EXPECT_EQ(FileText(dir.path() + "/a"), theirs);
  }
}

TEST(BesideTest, WhyADirectoryCannotBeMadeIsSaid) {
  const CheckpointDir dir;
  const std::string place = dir.path() + "/checkpoint";
  const FileCalls seen(
      place, [](const FileCall& call) { return call.kind == FileCall::Kind::kMkdir ? EACCES : 0; },
      nullptr);
  const absl::Status status = SaveRound(2, kNewer, place, kOneFile);
  EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
}

}  // namespace
}  // namespace sluice
