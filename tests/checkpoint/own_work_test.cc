// Ranks that wait for one rank's own work, or for bytes of others, wait as long as it takes.
#include "session/base/own_work.h"

#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "checkpoint/checkpoint_dir.h"
#include "checkpoint/file_calls.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "oracle/make_layout.h"
#include "session/world.h"
#include "sluice/session.h"

namespace sluice {
namespace {

using checkpoint_test::CheckpointDir;
using checkpoint_test::FileCall;
using checkpoint_test::FileCalls;
using checkpoint_test::kRound;
using checkpoint_test::RankTensors;
using oracle::MakeLayout;
using session_test::Side;

constexpr absl::Duration kTimeout = absl::Seconds(2);

void Sleep(double seconds) {
  const auto whole = static_cast<time_t>(seconds);
  const timespec time = {whole, static_cast<int64_t>((seconds - static_cast<double>(whole)) * 1e9)};
  nanosleep(&time, nullptr);
}

// Sessions that wait for kTimeout, for other ranks and for progress.
void WithShortPatience(
    int ranks,
    const std::function<void(int rank, Session* session, const CheckpointOptions&)>& body) {
  session_test::RunRanks(ranks, [&](session_test::Rank& self) {
    SessionOptions options;
    options.timeout = kTimeout;
    auto session = Session::Create(std::move(self.fabric), options).value();
    CheckpointOptions checkpoint;
    checkpoint.timeout = kTimeout;
    checkpoint.piece_bytes = 512;
    checkpoint.slots = 1;
    self.meet();  // from here on, calls of the system are the test's
    body(self.rank, session.get(), checkpoint);
    self.meet();
    EXPECT_TRUE(session->Close().ok());
  });
}

TensorTransfer Tensor(const std::string& name, const Layout& src, const Layout& dst) {
  return {name, {64, 32}, DType::kF32, DType::kF32, src, dst};
}

TEST(OwnWorkTest, ASlowCommitAndSlowHeadersCountAgainstNobody) {
  const Layout rows = MakeLayout({3}, {0, 1, 2}, "S(0)");
  const std::vector<TensorTransfer> tensors = {Tensor("a", rows, rows), Tensor("b", rows, rows)};
  const CheckpointDir dir;
  const std::string place = dir.path() + "/checkpoint";
  for (const auto kind : {FileCall::Kind::kCreate, FileCall::Kind::kRename}) {
    std::atomic<bool> slept = false;
    const FileCalls seen(
        place,
        [&](const FileCall& call) {
          if (call.kind == kind && !slept.exchange(true)) Sleep(2.5);
          return 0;
        },
        nullptr);
    WithShortPatience(3, [&](int rank, Session* session, const CheckpointOptions& options) {
      const RankTensors mine(tensors, Side::kSource, rank, 1);
      const absl::Status status = SaveCheckpoint(session, place, mine.tensors, options).status();
      EXPECT_TRUE(status.ok()) << status;
    });
    EXPECT_TRUE(slept);
  }
  std::atomic<bool> loads = false;
  std::atomic<bool> slept = false;
  const FileCalls seen(
      place,
      [&](const FileCall& call) {
        if (call.kind == FileCall::Kind::kRead && loads && !slept.exchange(true)) Sleep(2.5);
        return 0;
      },
      nullptr);
  WithShortPatience(3, [&](int rank, Session* session, const CheckpointOptions& options) {
    loads = true;
    const RankTensors mine(tensors, Side::kDestination, rank, 1);
    const absl::Status status =
        LoadCheckpoint(session, "mmap:" + place, mine.tensors, options).status();
    EXPECT_TRUE(status.ok()) << status;
    mine.ExpectHolds(kRound);
  });
  EXPECT_TRUE(slept);
}

// The session's thread drives streams meanwhile.
TEST(OwnWorkTest, WhatAFailedSaveLeavesIsRemovedOnAThreadOfItsOwn) {
  const Layout rows = MakeLayout({2}, {0, 1}, "S(0)");
  const std::vector<TensorTransfer> tensors = {Tensor("a", rows, rows), Tensor("b", rows, rows)};
  const CheckpointDir dir;
  const std::string place = dir.path() + "/checkpoint";
  std::mutex mutex;
  std::set<std::thread::id> removers;
  std::set<std::thread::id> sessions;
  int removals = 0;
  const FileCalls seen(
      place,
      [&](const FileCall& call) {
        if (call.kind == FileCall::Kind::kRename) return EIO;
        if (call.kind == FileCall::Kind::kUnlink || call.kind == FileCall::Kind::kRmdir) {
          const std::lock_guard<std::mutex> lock(mutex);
          removers.insert(std::this_thread::get_id());
          ++removals;
        }
        return 0;
      },
      nullptr);
  WithShortPatience(2, [&](int rank, Session* session, const CheckpointOptions& options) {
    {
      const std::lock_guard<std::mutex> lock(mutex);
      sessions.insert(std::this_thread::get_id());
    }
    const RankTensors mine(tensors, Side::kSource, rank, 1);
    EXPECT_FALSE(SaveCheckpoint(session, place, mine.tensors, options).ok());
  });
  EXPECT_GE(removals, 2) << "a temporary and the directory";
  EXPECT_FALSE(std::filesystem::exists(place));
  for (const std::thread::id remover : removers) EXPECT_EQ(sessions.count(remover), 0u);
}

TEST(OwnWorkTest, ARankWithNothingToDoIsNotLateWhileAnotherOneMoves) {
  // Rank 1 is busy with a tensor of its own, and rank 0 waits for its part in the next one.
  const Layout both = MakeLayout({2}, {0, 1}, "S(0)");
  const std::vector<TensorTransfer> tensors = {Tensor("a", both, MakeLayout({1}, {1}, "R")),
                                               Tensor("b", both, MakeLayout({2}, {0, 1}, "R"))};
  const CheckpointDir dir;
  WithShortPatience(2, [&](int rank, Session* session, const CheckpointOptions& options) {
    const RankTensors mine(tensors, Side::kSource, rank, 1);
    const absl::Status status = SaveCheckpoint(session, dir.path(), mine.tensors, options).status();
    EXPECT_TRUE(status.ok()) << status;
  });
  std::atomic<bool> loads = false;
  const FileCalls seen(
      dir.path(),
      [&](const FileCall& call) {
        if (call.kind == FileCall::Kind::kRead && loads) Sleep(0.25);
        return 0;
      },
      nullptr);
  WithShortPatience(2, [&](int rank, Session* session, const CheckpointOptions& options) {
    loads = true;
    const RankTensors mine(tensors, Side::kDestination, rank, 1);
    const absl::Status status =
        LoadCheckpoint(session, "mmap:" + dir.path(), mine.tensors, options).status();
    EXPECT_TRUE(status.ok()) << status;
    mine.ExpectHolds(kRound);
  });
}

TEST(OwnWorkTest, HasAnOutcomeAndCanBeStopped) {
  std::atomic<int> wakes{0};
  const auto wake = [&] { ++wakes; };
  absl::StatusOr<std::unique_ptr<OwnWork>> work =
      OwnWork::Start([](const WorkStop&) { return absl::DataLossError("torn"); }, wake);
  ASSERT_TRUE(work.ok()) << work.status();
  while (!(*work)->ended()) Sleep(0.001);
  EXPECT_TRUE(absl::IsDataLoss((*work)->outcome()));
  work->reset();
  EXPECT_EQ(wakes, 1);
  std::atomic<bool> was_stopped = false;
  work = OwnWork::Start(
      [&](const WorkStop& stop) {
        while (!stop) Sleep(0.001);
        was_stopped = true;
        return absl::OkStatus();
      },
      wake);
  ASSERT_TRUE(work.ok()) << work.status();
  work->reset();
  EXPECT_TRUE(was_stopped);
}

}  // namespace
}  // namespace sluice
