// Checkpoints on an HTTP server: where sizes are not known before the bytes come.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "checkpoint/checkpoint_dir.h"
#include "checkpoint/two_rounds.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "main/fails.h"
#include "session/base/own_work.h"
#include "session/checkpoint/checkpoint_catalog.h"
#include "session/checkpoint/checkpoint_headers.h"
#include "sluice/session.h"
#include "storage/nginx_server.h"

namespace sluice {
namespace {

using checkpoint_test::CheckpointDir;
using checkpoint_test::kMixture;
using checkpoint_test::kNewer;
using checkpoint_test::kNothing;
using checkpoint_test::kOlder;
using checkpoint_test::kOneFile;
using checkpoint_test::kRound;
using checkpoint_test::LoadRound;
using checkpoint_test::RandomTensors;
using checkpoint_test::RankTensors;
using checkpoint_test::SaveRound;
using checkpoint_test::TensorsPerFile;
using checkpoint_test::WithSessions;
using session_test::Side;

class HttpLoadTest : public testing::Test {
 protected:
  void SetUp() override {
    absl::StatusOr<std::unique_ptr<NginxServer>> server = NginxServer::Make();
    if (absl::IsUnavailable(server.status())) GTEST_SKIP() << server.status();
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }

  // Serves the files of `dir`; the file called `cut` without its last byte.
  void Serve(const CheckpointDir& dir, const std::string& cut = "") {
    for (const std::string& name : dir.Names()) {
      std::string text = FileText(dir.path() + "/" + name);
      if (name == cut) text.pop_back();
      server_->Write(name, text);
    }
  }

  // The folder that is served.
  std::string Folder() const {
    return std::filesystem::path(server_->ca_file()).parent_path().string() + "/data";
  }

  std::unique_ptr<NginxServer> server_;
};

TEST_F(HttpLoadTest, ReadsEachByteOnce) {
  const std::vector<TensorTransfer> tensors = RandomTensors(7, 1, 4);
  const CheckpointDir dir;
  dir.Write(tensors, 2, true);
  Serve(dir);
  std::atomic<int64_t> bytes_read{0};
  std::atomic<int64_t> header_bytes{0};
  WithSessions(4, [&](int rank, Session* session) {
    RankTensors mine(tensors, Side::kDestination, rank, 1);
    CheckpointOptions options;
    options.piece_bytes = 4096;
    const auto stats =
        LoadCheckpoint(session, server_->Url("plain"), mine.tensors, options).value();
    mine.ExpectHolds(kRound);
    bytes_read += stats.bytes_read;
    header_bytes += stats.header_bytes;
  });
  EXPECT_EQ(bytes_read, checkpoint_test::FileBytes(tensors));
  int64_t served = 0;
  for (const NginxServer::Request& request : server_->Stop()) served += request.body_bytes;
  EXPECT_EQ(served, bytes_read + header_bytes);
}

TEST_F(HttpLoadTest, ALoadBesideASaverIsNoMixture) {
  const std::string folder = Folder();
  for (const int64_t shard_bytes_max : {kOneFile, TensorsPerFile(2)}) {
    ASSERT_TRUE(SaveRound(1, kOlder, folder, shard_bytes_max).ok());
    const pid_t saver = fork();
    if (saver == 0) {
      bool good = true;
      for (int i = 0; good && !std::filesystem::exists(folder + "/stop"); ++i) {
        good = SaveRound(1, i % 2 == 0 ? kNewer : kOlder, folder, shard_bytes_max, i % 2 == 0).ok();
      }
      _exit(good ? 0 : 1);
    }
    int found = 0;
    for (int i = 0; i < 60; ++i) {
      absl::Status status;
      const int64_t round = LoadRound(2, server_->Url("plain"), &status);
      EXPECT_NE(round, kMixture);
      if (round > 0) ++found;
      if (round != kNothing) continue;
      EXPECT_TRUE(absl::IsDataLoss(status) || absl::IsNotFound(status)) << status;
    }
    std::ofstream(folder + "/stop") << "now";
    int state = 0;
    ASSERT_EQ(waitpid(saver, &state, 0), saver);
    EXPECT_EQ(state, 0);
    std::filesystem::remove(folder + "/stop");
    absl::Status status;
    EXPECT_GT(LoadRound(2, server_->Url("plain"), &status), 0) << status;
    RecordProperty(absl::StrCat("found_", shard_bytes_max), found);
  }
}

// Each reader has one connection: one for the index, one for the headers, one of each rank, and one
// for the look at the end.
TEST_F(HttpLoadTest, ALoadFromAServerWithTwoVersionsIsNoMixture) {
  const std::string folder = Folder();
  ASSERT_TRUE(SaveRound(1, kOlder, folder, kOneFile).ok());
  ASSERT_TRUE(SaveRound(1, kNewer, folder + "/newer", kOneFile).ok());
  // Dates have whole seconds.
  const std::string file = "/model.safetensors";
  std::filesystem::last_write_time(
      folder + "/newer" + file,
      std::filesystem::last_write_time(folder + file) + std::chrono::seconds(5));
  CheckpointOptions options;
  options.connections = 1;
  for (const std::string path : {"switch/", "dated_switch/"}) {
    for (int at = 2; at <= 5; ++at) {
      absl::Status status;
      EXPECT_EQ(LoadRound(2, server_->Url(absl::StrCat(path, at)), &status, options), kNothing)
          << path << at;
      EXPECT_TRUE(absl::IsDataLoss(status)) << path << at << ": " << status;
      EXPECT_THAT(std::string(status.message()), testing::HasSubstr("model.safetensors"));
      EXPECT_THAT(std::string(status.message()), testing::HasSubstr("has changed"));
    }
    absl::Status status;
    EXPECT_EQ(LoadRound(2, server_->Url(absl::StrCat(path, 6)), &status, options),
              static_cast<int64_t>(kOlder))
        << status;
  }
}

// As when another rank has gone meanwhile.
TEST_F(HttpLoadTest, AnIndexThatStillComesIsGivenUp) {
  const auto address = ParseSourceAddress(server_->Url("trickle")).value();
  WorkStop stop = false;
  absl::Status status;
  std::thread load([&] { status = FindTensors(address, {}, {}, stop).status(); });
  // For the calls to be under way, which they need not be.
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  stop = true;
  load.join();
  EXPECT_TRUE(absl::IsCancelled(status)) << status;
}

TEST_F(HttpLoadTest, AnIndexThatIsRefusedMayBeOneThatIsNotThere) {
  const std::string folder = Folder();
  absl::Status status;
  // nginx answers 403 for a link to itself.
  std::filesystem::create_symlink("model.safetensors.index.json",
                                  folder + "/model.safetensors.index.json");
  EXPECT_EQ(LoadRound(2, server_->Url("plain"), &status), kNothing);
  EXPECT_THAT(status, Fails(absl::StatusCode::kPermissionDenied, "index.json"));
  const CheckpointDir dir;
  ASSERT_TRUE(SaveRound(1, kNewer, dir.path(), kOneFile).ok());
  std::filesystem::copy(dir.path() + "/model.safetensors", folder);
  EXPECT_EQ(LoadRound(2, server_->Url("plain"), &status), static_cast<int64_t>(kNewer)) << status;
}

// The index, the headers and the tensors of each file.
TEST_F(HttpLoadTest, EachFileIsAskedForAgain) {
  const CheckpointDir dir;
  ASSERT_TRUE(SaveRound(1, kNewer, dir.path(), TensorsPerFile(3)).ok());
  Serve(dir);
  absl::Status status;
  EXPECT_EQ(LoadRound(2, server_->Url("each_burst/2"), &status), static_cast<int64_t>(kNewer))
      << status;
  std::map<std::string, int> refused;
  for (const NginxServer::Request& request : server_->Stop()) {
    if (request.status == 503) ++refused[request.uri];
  }
  EXPECT_EQ(refused.size(), dir.Names().size());
  for (const auto& [uri, times] : refused) EXPECT_EQ(times, 2) << uri;
}

TEST_F(HttpLoadTest, WhatIsBusyForGoodIsNamed) {
  CheckpointOptions options;
  options.retry = {.attempts_max = 2, .backoff = absl::Milliseconds(1)};
  const WorkStop stop = false;
  const auto busy = ParseSourceAddress(server_->Url("code/503")).value();
  const absl::Status index = FindTensors(busy, {}, options, stop).status();
  EXPECT_THAT(index, Fails(absl::StatusCode::kUnavailable,
                           "model.safetensors.index.json: gave up after 2 attempts"));
  const absl::Status header = ReadHeaders(busy, {"a.safetensors"}, options, stop).status();
  EXPECT_THAT(header,
              Fails(absl::StatusCode::kUnavailable, "a.safetensors: gave up after 2 attempts"));
}

// As when another rank has gone meanwhile.
TEST_F(HttpLoadTest, PausesBetweenAttemptsAreGivenUp) {
  CheckpointOptions options;
  options.retry.backoff = absl::Hours(1);
  const auto busy = ParseSourceAddress(server_->Url("code/503")).value();
  WorkStop stop = false;
  absl::Status index;
  absl::Status headers;
  std::thread look([&] { index = FindTensors(busy, {}, options, stop).status(); });
  std::thread read([&] { headers = ReadHeaders(busy, {"a.safetensors"}, options, stop).status(); });
  // For the calls to be under way, which they need not be.
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  stop = true;
  look.join();
  read.join();
  EXPECT_TRUE(absl::IsCancelled(index)) << index;
  EXPECT_TRUE(absl::IsCancelled(headers)) << headers;
}

TEST_F(HttpLoadTest, AFailureAmidTheLoadReachesAllRanksAndTheSessionGoesOn) {
  const std::vector<TensorTransfer> tensors = RandomTensors(8, 1, 3);
  const CheckpointDir dir;
  dir.Write(tensors, 1, false);
  const std::string file = dir.Names()[0];
  Serve(dir, file);
  std::vector<std::string> entries;
  for (const TensorTransfer& tensor : tensors) {
    entries.push_back(absl::StrCat("\"", tensor.name, "\":\"", file, "\""));
  }
  server_->Write("model.safetensors.index.json",
                 absl::StrCat(R"({"weight_map":{)", absl::StrJoin(entries, ","), "}}"));
  std::mutex mutex;
  std::set<absl::StatusCode> codes;
  WithSessions(3, [&](int rank, Session* session) {
    RankTensors mine(tensors, Side::kDestination, rank, 1);
    CheckpointOptions options;
    options.piece_bytes = 512;
    const absl::Status status =
        LoadCheckpoint(session, server_->Url("plain"), mine.tensors, options).status();
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr(file));
    {
      const std::lock_guard<std::mutex> lock(mutex);
      codes.insert(status.code());
    }
    // The same session, from a directory that is whole.
    const absl::Status again = LoadCheckpoint(session, dir.uri(), mine.tensors, options).status();
    EXPECT_TRUE(again.ok()) << again;
    mine.ExpectHolds(kRound);
  });
  EXPECT_EQ(codes, std::set<absl::StatusCode>{absl::StatusCode::kDataLoss});
}

}  // namespace
}  // namespace sluice
