// Files that shrink while a lease points into them, and programs that handle SIGBUS themselves.
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <string>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "main/fails.h"
#include "sluice/stream.h"
#include "stream/shard_dir.h"
#include "stream/take_all.h"

namespace sluice {
namespace {

using stream_test::Every;
using stream_test::ShardDir;
using stream_test::TakeAll;
using stream_test::WithStream;
using stream_test::WithStreams;

TEST(ShrinkingFileTest, AFileThatShrinksUnderALeaseIsAnErrorAndNotASignal) {
  for (const bool progress_thread : {false, true}) {
    for (const bool held : {false, true}) {
      const ShardDir dir(8, 20'000, 2);
      StreamOptions options = dir.Options("mmap:");
      std::string cursor;
      WithStream(
          options,
          [&](Stream* stream) {
            ASSERT_TRUE(stream->Next().ok());
            auto lease = stream->Next().value();
            ASSERT_EQ(truncate(dir.FileOf(0).c_str(), 0), 0);
            const auto* const bytes = static_cast<const uint8_t*>(lease.view().data);
            EXPECT_EQ(bytes[10'000], 0);
            EXPECT_EQ(bytes[19'999], 0);
            if (!held) lease = Lease();
            for (int i = 0; i < 2; ++i) {
              const absl::Status status = stream->Next().status();
              EXPECT_THAT(status, Fails(absl::StatusCode::kDataLoss, dir.NameOf(0)));
            }
            lease = Lease();
            cursor = stream->Cursor();
          },
          progress_thread);
      // What was zeros comes again. By now the read finds out.
      options.order.cursor = cursor;
      WithStream(options, [&](Stream* stream) {
        const absl::Status status = stream->Next().status();
        EXPECT_TRUE(absl::IsDataLoss(status)) << status;
      });
    }
  }
}

// Nothing of it raises a signal: the last page is there, and ends in zeros.
TEST(ShrinkingFileTest, AFileThatIsCutWithinAPageIsAnErrorToo) {
  const ShardDir dir(4, 1'000, 1);
  WithStream(dir.Options("mmap:"), [&](Stream* stream) {
    const auto lease = stream->Next().value();
    ASSERT_EQ(truncate(dir.FileOf(0).c_str(), 500), 0);
    const absl::Status status = stream->Next().status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  });
}

TEST(ShrinkingFileTest, AFileThatShrankBeforeItsTurnIsAnError) {
  const ShardDir dir(8, 20'000, 2);
  StreamOptions options = dir.Options("mmap:");
  options.reads.slots = 1;
  WithStream(options, [&](Stream* stream) {
    ASSERT_TRUE(stream->Next().ok());
    ASSERT_EQ(truncate(dir.FileOf(3).c_str(), 100), 0);
    absl::Status status;
    while (status.ok()) status = stream->Next().status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_TRUE(ReadFailureOf(status).has_value());
  });
}

TEST(ShrinkingFileTest, OtherRanksHearThatAFileShrankUnderALease) {
  const ShardDir dir(60, 10'000, 2);
  for (const bool progress_thread : {false, true}) {
    std::atomic<int> begun{0};
    std::atomic<bool> shrunk{false};
    WithStreams(
        3,
        [&](int rank) {
          StreamOptions options = dir.Options("mmap:");
          options.selection = {rank, 3, absl::nullopt};
          options.order.epochs = 100'000;  // nobody comes to the end
          return options;
        },
        [&](int rank, Stream* stream) {
          absl::StatusOr<Lease> lease = stream->Next();
          ASSERT_TRUE(lease.ok()) << lease.status();
          ++begun;
          if (rank == 0) {
            while (begun < 3) usleep(100);
            ASSERT_EQ(truncate(dir.FileOf(0).c_str(), 9'000), 0);
            shrunk = true;
          }
          while (!shrunk) usleep(100);
          while (lease.ok()) lease = stream->Next();
          EXPECT_TRUE(absl::IsDataLoss(lease.status())) << lease.status();
        },
        progress_thread);
    const ShardDir again(60, 10'000, 2);
    std::filesystem::copy(again.FileOf(0), dir.FileOf(0),
                          std::filesystem::copy_options::overwrite_existing);
  }
}

void OwnHandler(int) {}

TEST(ShrinkingFileTest, NothingIsLentWhereTheProgramHasAHandlerOfItsOwn) {
  const ShardDir dir(5, 5'000, 5);
  WithStream(dir.Options("mmap:"), [&](Stream* stream) { TakeAll(stream, dir); });  // ours is there
  struct sigaction ours;
  struct sigaction own = {};
  own.sa_handler = &OwnHandler;
  ASSERT_EQ(sigaction(SIGBUS, &own, &ours), 0);
  WithStream(dir.Options("mmap:"), [&](Stream* stream) {
    const auto lease = stream->Next().value();
    // What is copied may be written to.
    *static_cast<uint8_t*>(lease.view().data) ^= 0;
    dir.Expect(lease.view(), 0);
    EXPECT_EQ(TakeAll(stream, dir), Every(1, 1, 5));
  });
  ASSERT_EQ(sigaction(SIGBUS, &ours, nullptr), 0);
}

}  // namespace
}  // namespace sluice
