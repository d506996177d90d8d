// Saves that end at any of their steps: killed there, stopped with the system there, or with a step
// that fails. The directory has the older checkpoint then or the newer one, whole.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "checkpoint/checkpoint_dir.h"
#include "checkpoint/file_calls.h"
#include "checkpoint/two_rounds.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;
using checkpoint_test::CheckpointDir;
using checkpoint_test::FileCall;
using checkpoint_test::FileCalls;
using checkpoint_test::kNewer;
using checkpoint_test::kOlder;
using checkpoint_test::kOneFile;
using checkpoint_test::LoadRound;
using checkpoint_test::SaveRound;
using checkpoint_test::TensorsPerFile;

struct Change {
  const char* name;
  std::optional<int64_t> older;  // shard_bytes_max; nothing: there is no older checkpoint
  int64_t newer;
};

const std::vector<Change>& Changes() {
  static const auto* const kChanges = new std::vector<Change>{
      {"one file over one", kOneFile, kOneFile},
      {"one file over three", TensorsPerFile(2), kOneFile},
      {"three files over one", kOneFile, TensorsPerFile(2)},
      {"three files over three", TensorsPerFile(2), TensorsPerFile(2)},
      {"two files over three", TensorsPerFile(2), TensorsPerFile(3)},
      {"three files over two", TensorsPerFile(3), TensorsPerFile(2)},
      {"one file over nothing", std::nullopt, kOneFile},
      {"three files over nothing", std::nullopt, TensorsPerFile(2)},
  };
  return *kChanges;
}

constexpr int kRanks = 2;

// A folder in which checkpoints are made, and the older one of a change to begin with, kept aside.
class Scene {
 public:
  explicit Scene(const Change& change) : change_(change) {
    if (change.older) {
      EXPECT_TRUE(SaveRound(kRanks, kOlder, aside(), *change.older).ok());
    }
  }

  std::string folder() const { return dir_.path(); }
  std::string place() const { return dir_.path() + "/checkpoint"; }
  std::string aside() const { return dir_.path() + "/aside"; }

  void Reset() const {
    fs::remove_all(place());
    if (change_.older) fs::copy(aside(), place());
  }
  absl::Status Save(uint64_t round = kNewer) const {
    return SaveRound(kRanks, round, place(), change_.newer);
  }
  // What a load may find while the newer one is not known to be there.
  bool IsOlder(int64_t found, const absl::Status& status) const {
    return change_.older ? found == static_cast<int64_t>(kOlder) : absl::IsNotFound(status);
  }
  // Names that are not there once a save has ended.
  std::vector<std::string> Leftovers() const {
    std::vector<std::string> left;
    int shards = 0;
    for (const auto& entry : fs::directory_iterator(place())) {
      const std::string name = entry.path().filename().string();
      if (absl::StartsWith(name, "model-")) ++shards;
      if (absl::StartsWith(name, ".")) left.push_back(name);
    }
    const int most = change_.newer == kOneFile ? 0 : change_.newer == TensorsPerFile(2) ? 3 : 2;
    if (shards != most) left.push_back(absl::StrCat(shards, " shards"));
    if (fs::exists(place() + "/model.safetensors") != (most == 0)) left.push_back("the one file");
    return left;
  }

 private:
  const CheckpointDir dir_;
  const Change change_;
};

// Calls that change nothing that a load sees: to be killed after one is to be killed before the
// next.
bool IsQuiet(FileCall::Kind kind) {
  return kind != FileCall::Kind::kRename && kind != FileCall::Kind::kUnlink &&
         kind != FileCall::Kind::kMkdir && kind != FileCall::Kind::kLock;
}

// Saves in a process that is killed before or after its call number `at`. False: it made fewer.
bool SaveAndDie(const Scene& scene, int at, bool after) {
  const pid_t child = fork();
  if (child == 0) {
    std::atomic<int> calls{0};
    const auto die = [&](bool here) {
      if (here) kill(getpid(), SIGKILL);
      return 0;
    };
    const FileCalls seen(
        scene.place(),
        [&](const FileCall& call) {
          if (call.kind == FileCall::Kind::kRead || (after && IsQuiet(call.kind))) return 0;
          return die(++calls == at && !after);
        },
        [&](const FileCall& call) { die(after && !IsQuiet(call.kind) && calls == at); });
    _exit(scene.Save().ok() ? 0 : 1);
  }
  int state = 0;
  EXPECT_EQ(waitpid(child, &state, 0), child);
  EXPECT_TRUE(WIFSIGNALED(state) || (WIFEXITED(state) && WEXITSTATUS(state) == 0)) << state;
  return WIFSIGNALED(state);
}

class CrashTest : public testing::TestWithParam<Change> {};
INSTANTIATE_TEST_SUITE_P(Changes, CrashTest, testing::ValuesIn(Changes()),
                         [](const testing::TestParamInfo<Change>& change) {
                           std::string name = change.param.name;
                           for (char& c : name) c = c == ' ' ? '_' : c;
                           return name;
                         });

TEST_P(CrashTest, ASaverThatIsKilledLeavesOneOfTheTwo) {
  const Scene scene(GetParam());
  for (const bool after : {false, true}) {
    int kills = 0;
    bool was_newer = false;
    for (int at = 1;; ++at) {
      scene.Reset();
      const bool killed = SaveAndDie(scene, at, after);
      absl::Status status;
      const int64_t found = LoadRound(kRanks, "buffered:" + scene.place(), &status);
      const bool is_newer = found == static_cast<int64_t>(kNewer);
      EXPECT_TRUE(is_newer || (killed && !was_newer && scene.IsOlder(found, status)))
          << "killed " << (after ? "after" : "before") << " call " << at << ": " << found << ", "
          << status;
      was_newer = is_newer;
      if (!killed) break;
      ++kills;
      if (HasFailure()) return;
      if (!after && at % 4 != 0) continue;
      // What it left is in nobody's way, and goes with the next save.
      EXPECT_TRUE(scene.Save(kOlder).ok());
      EXPECT_THAT(scene.Leftovers(), testing::IsEmpty()) << at;
      EXPECT_EQ(LoadRound(kRanks, "buffered:" + scene.place(), &status),
                static_cast<int64_t>(kOlder));
      if (HasFailure()) return;
    }
    EXPECT_GE(kills, after ? 3 : 8);
  }
}

TEST_P(CrashTest, AStepThatFailsIsAnErrorAndLeavesOneOfTheTwo) {
  const Scene scene(GetParam());
  for (int at = 1;; ++at) {
    scene.Reset();
    std::atomic<int> calls{0};
    absl::Status saved;
    {
      const FileCalls seen(
          scene.place(),
          [&](const FileCall& call) {
            return call.kind != FileCall::Kind::kRead && ++calls == at ? EDQUOT : 0;
          },
          nullptr);
      saved = scene.Save();
    }
    absl::Status status;
    const int64_t found = LoadRound(kRanks, "buffered:" + scene.place(), &status);
    const bool in_place = absl::StrContains(saved.message(), "the new checkpoint is in place");
    if (saved.ok() || in_place) {
      EXPECT_EQ(found, static_cast<int64_t>(kNewer)) << at << ": " << saved << ", " << status;
    } else {
      EXPECT_TRUE(scene.IsOlder(found, status)) << at << ": " << saved << ", " << status;
    }
    if (HasFailure()) return;
    if (calls < at) break;
  }
}

TEST_P(CrashTest, WhereNothingCanBeRemovedTheErrorSaysWhichIsInPlace) {
  const Scene scene(GetParam());
  scene.Reset();
  absl::Status saved;
  {
    const FileCalls seen(
        scene.place(),
        [](const FileCall& call) { return call.kind == FileCall::Kind::kUnlink ? EIO : 0; },
        nullptr);
    saved = scene.Save();
  }
  absl::Status status;
  const int64_t found = LoadRound(kRanks, "buffered:" + scene.place(), &status);
  if (saved.ok() || absl::StrContains(saved.message(), "the new checkpoint is in place")) {
    EXPECT_EQ(found, static_cast<int64_t>(kNewer)) << saved << ", " << status;
  } else {
    EXPECT_TRUE(scene.IsOlder(found, status)) << saved << ", " << status;
  }
}

TEST(CrashTest, AFullOrReadOnlyFileSystemIsToldByTheCode) {
  const CheckpointDir dir;
  const std::string place = dir.path() + "/checkpoint";
  using Kind = FileCall::Kind;
  for (const Kind kind :
       {Kind::kMkdir, Kind::kCreate, Kind::kWrite, Kind::kResize, Kind::kSync, Kind::kRename}) {
    for (const int error : {ENOSPC, EDQUOT, EROFS}) {
      const FileCalls seen(
          place, [&](const FileCall& call) { return call.kind == kind ? error : 0; }, nullptr);
      const absl::Status status = SaveRound(2, kNewer, place, kOneFile);
      EXPECT_EQ(status.code(), error == EROFS ? absl::StatusCode::kPermissionDenied
                                              : absl::StatusCode::kResourceExhausted)
          << static_cast<int>(kind) << ": " << status;
    }
  }
}

// What of a directory's names is on the storage, for a file system that does only what fsync asks
// of it. After a crash of the system, any of the names that were changed since the directory was
// last synced may be as before.
class Names {
 public:
  using State = std::map<std::string, std::string>;  // the file of each name

  explicit Names(const std::string& place) {
    if (!fs::exists(place)) return;
    for (const auto& entry : fs::directory_iterator(place)) {
      const std::string name = entry.path().filename().string();
      if (name[0] != '.') durable_[name] = "older/" + name;
    }
  }

  void Renamed(const std::string& name) { pending_.emplace_back(name, "newer/" + name); }
  void Removed(const std::string& name) { pending_.emplace_back(name, ""); }
  void Synced() {
    for (const auto& change : pending_) Apply(change, &durable_);
    pending_.clear();
  }
  // All that a crash now may leave.
  std::vector<State> States() const {
    std::vector<State> states;
    for (size_t set = 0; set < size_t{1} << pending_.size(); ++set) {
      State state = durable_;
      for (size_t i = 0; i < pending_.size(); ++i) {
        if ((set >> i & 1) != 0) Apply(pending_[i], &state);
      }
      states.push_back(std::move(state));
    }
    return states;
  }

 private:
  using ChangeOfName = std::pair<std::string, std::string>;
  static void Apply(const ChangeOfName& change, State* state) {
    if (change.second.empty()) {
      state->erase(change.first);
    } else {
      (*state)[change.first] = change.second;
    }
  }
  State durable_;
  std::vector<ChangeOfName> pending_;
};

void StopTheSystemAnywhere(const Change& change) {
  const Scene scene(change);
  scene.Reset();
  const std::string vault = scene.folder() + "/vault";
  fs::create_directories(vault + "/newer");
  if (change.older) fs::copy(scene.aside(), vault + "/older");
  Names names(scene.place());
  std::vector<std::vector<Names::State>> history = {names.States()};
  std::mutex mutex;
  std::map<std::string, bool> synced;  // temporaries, since they were last written to
  absl::Status saved;
  {
    const FileCalls seen(
        scene.place(), [](const FileCall&) { return 0; },
        [&](const FileCall& call) {
          const std::lock_guard<std::mutex> lock(mutex);
          const fs::path path(call.path);
          const std::string name = path.filename().string();
          if (call.kind == FileCall::Kind::kWrite || call.kind == FileCall::Kind::kResize) {
            synced[call.path] = false;
          } else if (call.kind == FileCall::Kind::kSync && call.path == scene.place()) {
            names.Synced();
          } else if (call.kind == FileCall::Kind::kSync) {
            synced[call.path] = true;
          } else if (call.kind == FileCall::Kind::kRename) {
            EXPECT_TRUE(synced[call.path])
                << call.to << " gets its name before its bytes are there";
            const std::string to = fs::path(call.to).filename().string();
            fs::copy(call.to, vault + "/newer/" + to);
            names.Renamed(to);
          } else if (call.kind == FileCall::Kind::kUnlink && name[0] != '.') {
            names.Removed(name);
          } else {
            return;
          }
          history.push_back(names.States());
        });
    saved = scene.Save();
  }
  ASSERT_TRUE(saved.ok()) << saved;
  int64_t states = 0;
  for (size_t step = 0; step < history.size(); ++step) {
    if (step > 0 && history[step] == history[step - 1] && step + 1 < history.size()) continue;
    for (const Names::State& state : history[step]) {
      const std::string place = absl::StrCat(scene.folder(), "/after");
      fs::remove_all(place);
      fs::create_directory(place);
      for (const auto& [name, file] : state) fs::copy(vault + "/" + file, place + "/" + name);
      absl::Status status;
      const int64_t found = LoadRound(kRanks, "buffered:" + place, &status);
      const bool is_newer = found == static_cast<int64_t>(kNewer);
      const bool is_last = step + 1 == history.size();
      EXPECT_TRUE(is_newer || (!is_last && scene.IsOlder(found, status)))
          << "step " << step << " of " << history.size() << ": " << found << ", " << status;
      ++states;
    }
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GE(states, 3);
}

// All changes each day, as each has an order of its own in which names go.
TEST(CrashTest, WhateverReachedTheStorageWhenTheSystemStopsIsOneOfTheTwo) {
  for (const Change& change : Changes()) {
    SCOPED_TRACE(change.name);
    StopTheSystemAnywhere(change);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace sluice
