// Streams over stores that count for themselves: a slow file system and an HTTP server.
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "fuse/slow_fs_mount.h"
#include "gmock/gmock.h"
#include "main/fails.h"
#include "session/world.h"
#include "sluice/session.h"
#include "sluice/stream.h"
#include "storage/format/npy.h"
#include "storage/nginx_server.h"
#include "stream/shard_dir.h"
#include "stream/take_all.h"

namespace sluice {
namespace {

using fuse::SlowFsMount;
using fuse::SlowFsReport;
using stream_test::Every;
using stream_test::ShardDir;
using stream_test::TakeAll;
using stream_test::WithStreams;

constexpr int64_t kItems = 48;
constexpr int64_t kItemBytes = 20'000;  // no multiple of a page
constexpr int64_t kObjects = 12;

class SlowFileSystemTest : public testing::Test {
 protected:
  // False, with the test skipped or failed, if there is no mount.
  bool Mount(const std::vector<std::string>& flags) {
    absl::StatusOr<std::unique_ptr<SlowFsMount>> mount = SlowFsMount::Create(dir_.path(), flags);
    if (mount.ok()) {
      mount_ = *std::move(mount);
      return true;
    }
    if (absl::IsUnavailable(mount.status())) {
      [&] { GTEST_SKIP() << mount.status(); }();
    } else {
      ADD_FAILURE() << mount.status();
    }
    return false;
  }
  StreamOptions Options() const {
    StreamOptions options = dir_.Options();
    options.source.uri = "file:" + mount_->path();
    return options;
  }
  // Without the index, so that the shards' are all the reads there are.
  StreamOptions OptionsWithoutIndex() const {
    std::filesystem::remove(dir_.path() + "/index.json");
    StreamOptions options = Options();
    options.source.format = ItemFormat::kRaw;
    options.source.item_bytes = kItemBytes;
    return options;
  }

  const ShardDir dir_{kItems, kItemBytes, kItems / kObjects};
  std::unique_ptr<SlowFsMount> mount_;
};

TEST_F(SlowFileSystemTest, EachByteLeavesOnceAndEachObjectIsOpenedOnce) {
  for (const int ranks : {1, 2, 4, 8}) {
    if (!Mount({"--latency-ms=2", "--jitter=0.5"})) return;
    WithStreams(ranks, Options(), [&](int, Stream* stream) {
      EXPECT_EQ(TakeAll(stream, dir_), Every(0, 1, kItems));
    });
    const auto report = mount_->Report().value();
    SlowFsReport::Object shards;
    for (const auto& [path, object] : report.objects) {
      if (absl::StrContains(path, "index.json")) continue;
      EXPECT_EQ(object.opens, 1) << path;
      shards.bytes += object.bytes;
    }
    EXPECT_EQ(shards.bytes, kItems * kItemBytes) << ranks;
    mount_.reset();
  }
}

TEST_F(SlowFileSystemTest, AsManyReadsAsSlotsAreInFlight) {
  // The first 16 reads end only when all 16 are there.
  if (!Mount({"--hold=16"})) return;
  StreamOptions options = OptionsWithoutIndex();
  options.reads.slots = 16;
  WithStreams(1, options,
              [&](int, Stream* stream) { EXPECT_EQ(TakeAll(stream, dir_), Every(0, 1, kItems)); });
}

// Headers are read by one rank, and items are opened once more.
TEST_F(SlowFileSystemTest, HeadersAreReadOnceForAllRanks) {
  constexpr int64_t kFiles = 6;
  std::filesystem::remove(dir_.path() + "/index.json");
  for (int64_t i = 0; i < kObjects; ++i) std::filesystem::remove(dir_.FileOf(i));
  for (int64_t i = 0; i < kFiles; ++i) {
    const auto header = NpyHeaderText(ElementType::kU8, {2, 5'000}, 64).value();
    std::ofstream(absl::StrCat(dir_.path(), "/", i, ".npy"), std::ios::binary)
        << header << std::string(10'000, static_cast<char>('a' + i));
  }
  if (!Mount({})) return;
  StreamOptions options = Options();
  options.source.format = ItemFormat::kNpy;
  WithStreams(4, options, [&](int, Stream* stream) {
    ASSERT_EQ(stream->items(), 2 * kFiles);
    for (int64_t item = 0; item < 2 * kFiles; ++item) {
      const auto lease = stream->Next().value();
      EXPECT_EQ(lease.view().shape, std::vector<int64_t>{5'000});
      EXPECT_EQ(*static_cast<const char*>(lease.view().data), 'a' + item / 2);
    }
  });
  const auto report = mount_->Report().value();
  int64_t files = 0;
  for (const auto& [path, object] : report.objects) {
    if (!absl::EndsWith(path, ".npy")) continue;
    ++files;
    EXPECT_EQ(object.opens, 2) << path;
  }
  EXPECT_EQ(files, kFiles);
}

TEST_F(SlowFileSystemTest, InputErrorsAreTriedAgain) {
  if (!Mount({"--fault=eio:0.1", "--seed=3"})) return;
  StreamOptions options = OptionsWithoutIndex();
  options.reads.retry.attempts_max = 12;
  options.reads.retry.backoff = absl::Milliseconds(1);
  WithStreams(1, options, [&](int, Stream* stream) {
    EXPECT_EQ(TakeAll(stream, dir_), Every(0, 1, kItems));
    EXPECT_GT(stream->stats().retries, 0);
  });
}

TEST_F(SlowFileSystemTest, LastingInputErrorsAreOneError) {
  if (!Mount({"--fault=dead:1"})) return;
  StreamOptions options = OptionsWithoutIndex();
  options.reads.retry.attempts_max = 2;
  options.reads.retry.backoff = absl::Milliseconds(1);
  WithStreams(2, options, [&](int, Stream* stream) {
    EXPECT_THAT(stream->Next().status(), Fails(absl::StatusCode::kUnavailable, "after 2 attempts"));
  });
}

class HttpStreamTest : public testing::Test {
 protected:
  // False, with the test skipped or failed, if there is no server.
  bool Serve() {
    absl::StatusOr<std::unique_ptr<NginxServer>> server = NginxServer::Make();
    if (!server.ok()) {
      if (absl::IsUnavailable(server.status())) {
        [&] { GTEST_SKIP() << server.status(); }();
      } else {
        ADD_FAILURE() << server.status();
      }
      return false;
    }
    server_ = *std::move(server);
    for (const auto& entry : std::filesystem::directory_iterator(dir_.path())) {
      std::ifstream file(entry.path(), std::ios::binary);
      server_->Write(entry.path().filename().string(),
                     std::string(std::istreambuf_iterator<char>(file), {}));
    }
    return true;
  }
  StreamOptions Options(const std::string& place) const {
    StreamOptions options = dir_.Options();
    options.source.uri = server_->Url(place);
    return options;
  }

  // Expects that each item comes with its only request. A machine that stands still for as long as
  // a request may be without a byte makes one late, but not each time.
  void ExpectInTime(const StreamOptions& options) const {
    constexpr int kTries = 20;
    absl::Status late;
    for (int tries = 0; tries < kTries; ++tries) {
      late = absl::OkStatus();
      WithStreams(1, options, [&](int, Stream* stream) {
        absl::StatusOr<Lease> lease = stream->Next();
        for (; lease.ok() && !lease->end(); lease = stream->Next()) {
          dir_.Expect(lease->view(), lease->item());
        }
        late = lease.status();
        if (!late.ok()) return;
        EXPECT_EQ(stream->stats().items, kItems);
        EXPECT_EQ(stream->stats().retries, 0);
        EXPECT_EQ(stream->stats().requests, kItems);
      });
      if (late.ok() || !absl::IsUnavailable(late)) break;
    }
    EXPECT_TRUE(late.ok()) << late;
  }

  const ShardDir dir_{kItems, kItemBytes, kItems / kObjects};
  std::unique_ptr<NginxServer> server_;
};

TEST_F(HttpStreamTest, EachByteLeavesOnceOverFewConnections) {
  for (const int ranks : {1, 2, 4}) {
    if (!Serve()) return;
    StreamOptions options = Options("delay/2/");
    options.reads.slots = 8;
    options.source.connections = 4;
    WithStreams(ranks, options, [&](int, Stream* stream) {
      EXPECT_EQ(TakeAll(stream, dir_), Every(0, 1, kItems));
    });
    int64_t bytes = 0;
    int64_t indices = 0;
    std::set<int64_t> connections;
    for (const NginxServer::Request& request : server_->Stop()) {
      if (absl::StrContains(request.uri, "index.json")) {
        ++indices;
      } else {
        bytes += request.body_bytes;
        connections.insert(request.connection);
      }
    }
    EXPECT_EQ(bytes, kItems * kItemBytes) << ranks;
    EXPECT_EQ(indices, 1) << ranks;
    EXPECT_LE(connections.size(), static_cast<size_t>(4 * ranks));
  }
}

TEST_F(HttpStreamTest, NoIndexIsNotFoundOnEveryRank) {
  if (!Serve()) return;
  session_test::RunRanks(3, [&](session_test::Rank& self) {
    auto session = Session::Create(std::move(self.fabric), SessionOptions()).value();
    const absl::Status status = OpenStream(session.get(), Options("plain/nothing/")).status();
    EXPECT_TRUE(absl::IsNotFound(status)) << status;
    self.meet();
  });
}

// Each piece takes twice as long as a request may be without a byte.
TEST_F(HttpStreamTest, ASlowButSteadyLinkIsNotLate) {
  if (!Serve()) return;
  StreamOptions options = Options("fault/slow/");
  options.source.connections = 16;
  options.reads.retry.request_timeout = absl::Milliseconds(300);
  options.reads.retry.attempts_max = 1;
  ExpectInTime(options);
}

// All pieces are asked for at once and share two connections: the last ones wait longer than a
// request may be without a byte.
TEST_F(HttpStreamTest, PiecesThatWaitForAConnectionAreNotLate) {
  if (!Serve()) return;
  StreamOptions options = Options("delay/60/");
  options.source.connections = 2;
  options.reads.slots = kItems;
  options.reads.retry.request_timeout = absl::Milliseconds(600);
  options.reads.retry.attempts_max = 1;
  ExpectInTime(options);
}

// The index takes longer to come than a rank may be silent: rank 0 waits for it, and is heard.
TEST_F(HttpStreamTest, ASlowIndexPoisonsNobody) {
  if (!Serve()) return;
  session_test::RunRanks(3, [&](session_test::Rank& self) {
    auto session =
        Session::Create(std::move(self.fabric), {.timeout = absl::Milliseconds(1500)}).value();
    absl::StatusOr<std::unique_ptr<Stream>> stream =
        OpenStream(session.get(), Options("delay/2500/"));
    EXPECT_TRUE(stream.ok()) << stream.status();
    if (stream.ok()) {
      const absl::StatusOr<Lease> lease = (*stream)->Next();
      EXPECT_TRUE(lease.ok()) << lease.status();
    }
    self.meet();
    stream = absl::CancelledError();
    EXPECT_TRUE(OpenStream(session.get(), Options("plain/")).ok());
    self.meet();
  });
}

TEST_F(HttpStreamTest, ASignatureIsInNoMessage) {
  if (!Serve()) return;
  session_test::RunRanks(1, [&](session_test::Rank& self) {
    const auto session = Session::Create(std::move(self.fabric), SessionOptions()).value();
    EXPECT_THAT(OpenStream(session.get(), Options("plain/a.bin?X-Amz-Signature=secret")).status(),
                Fails(absl::StatusCode::kInvalidArgument,
                      testing::AllOf(testing::HasSubstr("query"),
                                     testing::Not(testing::HasSubstr("secret")))));
  });
}

}  // namespace
}  // namespace sluice
