// Checkpoints on an HTTP server: where sizes are not known before the bytes come.
#include <atomic>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "checkpoint/checkpoint_dir.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "sluice/session.h"
#include "storage/nginx_server.h"

namespace sluice {
namespace {

using checkpoint_test::CheckpointDir;
using checkpoint_test::kRound;
using checkpoint_test::RandomTensors;
using checkpoint_test::RankTensors;
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
      std::ifstream file(dir.path() + "/" + name, std::ios::binary);
      std::string text(std::istreambuf_iterator<char>(file), {});
      if (name == cut) text.pop_back();
      server_->Write(name, text);
    }
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
    const absl::StatusOr<CheckpointStats> stats =
        session->LoadCheckpoint(server_->Url("plain"), mine.tensors, options);
    ASSERT_TRUE(stats.ok()) << stats.status();
    mine.ExpectHolds(kRound);
    bytes_read += stats->bytes_read;
    header_bytes += stats->header_bytes;
  });
  EXPECT_EQ(bytes_read, checkpoint_test::FileBytes(tensors));
  int64_t served = 0;
  for (const NginxServer::Request& request : server_->Stop()) served += request.body_bytes;
  EXPECT_EQ(served, bytes_read + header_bytes);
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
        session->LoadCheckpoint(server_->Url("plain"), mine.tensors, options).status();
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr(file));
    {
      const std::lock_guard<std::mutex> lock(mutex);
      codes.insert(status.code());
    }
    // The same session, from a directory that is whole.
    const absl::Status again = session->LoadCheckpoint(dir.uri(), mine.tensors, options).status();
    EXPECT_TRUE(again.ok()) << again;
    mine.ExpectHolds(kRound);
  });
  EXPECT_EQ(codes, std::set<absl::StatusCode>{absl::StatusCode::kDataLoss});
}

}  // namespace
}  // namespace sluice
