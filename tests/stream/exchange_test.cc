// Streams of several ranks: read once and exchanged, each rank its own items, failure of one.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "session/world.h"
#include "sluice/session.h"
#include "sluice/stream.h"
#include "stream/shard_dir.h"
#include "stream/take_all.h"

namespace sluice {
namespace {

using session_test::Rank;
using session_test::RunRanks;
using stream_test::Every;
using stream_test::ShardDir;
using stream_test::TakeAll;
using stream_test::WithStreams;

TEST(ExchangeTest, EveryRankGetsAllAndEachByteIsReadOnce) {
  const ShardDir dir(60, 3'000, 4);
  for (const int ranks : {2, 3, 5, 8}) {
    for (const bool progress_thread : {false, true}) {
      std::atomic<int64_t> bytes_read{0};
      std::atomic<int64_t> opens{0};
      WithStreams(
          ranks,
          [&](int) {
            StreamOptions options = dir.Options();
            options.slots = 5;
            options.piece_bytes = 1'024;
            return options;
          },
          [&](int, Stream* stream) {
            EXPECT_EQ(TakeAll(stream, dir), Every(0, 1, 60));
            bytes_read += stream->stats().bytes_read;
            opens += stream->stats().opens;
          },
          progress_thread);
      EXPECT_EQ(bytes_read, 60 * 3'000) << ranks;
      EXPECT_EQ(opens, 15) << ranks;
    }
  }
}

TEST(ExchangeTest, WithoutExchangeEachRankReadsAll) {
  const ShardDir dir(10, 1'000, 4);
  std::atomic<int64_t> bytes_read{0};
  WithStreams(
      3,
      [&](int) {
        StreamOptions options = dir.Options();
        options.exchange = false;
        return options;
      },
      [&](int, Stream* stream) {
        EXPECT_EQ(TakeAll(stream, dir), Every(0, 1, 10));
        bytes_read += stream->stats().bytes_read;
      });
  EXPECT_EQ(bytes_read, 3 * 10 * 1'000);
}

TEST(ExchangeTest, EachRankItsOwnItems) {
  const ShardDir dir(61, 1'000, 4);
  WithStreams(
      4,
      [&](int rank) {
        StreamOptions options = dir.Options();
        options.selection = {rank, 4, -1};
        return options;
      },
      [&](int rank, Stream* stream) { EXPECT_EQ(TakeAll(stream, dir), Every(rank, 4, 61)); });
}

TEST(ExchangeTest, OverlappingSelectionsShareWhatOverlaps) {
  const ShardDir dir(40, 1'000, 3);
  std::atomic<int64_t> bytes_read{0};
  WithStreams(
      3,
      [&](int rank) {
        StreamOptions options = dir.Options();
        options.selection = {rank * 10, 1, rank * 10 + 20};
        options.slots = 3;
        return options;
      },
      [&](int rank, Stream* stream) {
        EXPECT_EQ(TakeAll(stream, dir), Every(rank * 10, 1, rank * 10 + 20));
        bytes_read += stream->stats().bytes_read;
      });
  EXPECT_EQ(bytes_read, 40 * 1'000);
}

TEST(ExchangeTest, BudgetsMayDifferBetweenRanksAndBeOne) {
  const ShardDir dir(50, 2'000, 3);
  for (const bool in_order : {true, false}) {
    WithStreams(
        4,
        [&](int rank) {
          StreamOptions options = dir.Options();
          options.slots = 1 + rank * 2;
          options.device_buffers = 1 + rank;
          options.piece_bytes = 512;
          options.in_order = in_order;
          options.shuffle = true;
          options.epochs = 2;
          return options;
        },
        [&](int, Stream* stream) { EXPECT_EQ(TakeAll(stream, dir).size(), 100u); });
  }
}

TEST(ExchangeTest, CursorsOfFourRanksServeThree) {
  const ShardDir dir(48, 300, 48);
  StreamOptions common = dir.Options();
  common.shuffle = true;
  common.seed = 2;
  std::vector<std::string> cursors(4);
  std::mutex mutex;
  std::vector<int64_t> seen;
  WithStreams(
      4,
      [&](int rank) {
        StreamOptions options = common;
        options.selection = {rank, 4, -1};
        return options;
      },
      [&](int rank, Stream* stream) {
        for (int i = 0; i < 3 + rank % 2; ++i) {
          const absl::StatusOr<Lease> lease = stream->Next();
          ASSERT_TRUE(lease.ok());
          const std::lock_guard<std::mutex> lock(mutex);
          seen.push_back(lease->item());
        }
        cursors[static_cast<size_t>(rank)] = stream->Cursor();
      });
  const absl::StatusOr<std::string> merged = MergeCursors(cursors);
  ASSERT_TRUE(merged.ok()) << merged.status();
  WithStreams(
      3,
      [&](int rank) {
        StreamOptions options = common;
        options.selection = {rank, 3, -1};
        options.cursor = *merged;
        return options;
      },
      [&](int, Stream* stream) {
        const std::vector<int64_t> items = TakeAll(stream, dir);
        const std::lock_guard<std::mutex> lock(mutex);
        seen.insert(seen.end(), items.begin(), items.end());
      });
  std::sort(seen.begin(), seen.end());
  EXPECT_EQ(seen, Every(0, 1, 48));
}

TEST(ExchangeTest, OneRanksFailureReachesAll) {
  const ShardDir dir(40, 1'000, 4);
  std::filesystem::remove(dir.FileOf(5));
  WithStreams(
      3, [&](int) { return dir.Options(); },
      [&](int, Stream* stream) {
        absl::StatusOr<Lease> lease;
        do {
          lease = stream->Next();
        } while (lease.ok() && !lease->end());
        EXPECT_TRUE(absl::IsNotFound(lease.status())) << lease.status();
        EXPECT_THAT(std::string(lease.status().message()), testing::HasSubstr("shard-00005.bin"));
      });
}

// The first rank to have opened the stream fails while others are still about to.
TEST(ExchangeTest, AFailureReachesRanksThatAreStillOpening) {
  const ShardDir dir(4, 1'000, 4);
  std::filesystem::remove(dir.FileOf(0));
  for (int round = 0; round < 50; ++round) {
    WithStreams(
        4,
        [&](int) {
          StreamOptions options = dir.Options();
          options.timeout = absl::Seconds(10);
          return options;
        },
        [&](int, Stream* stream) {
          const absl::Status status = stream->Next().status();
          EXPECT_TRUE(absl::IsNotFound(status)) << status;
        });
  }
}

TEST(ExchangeTest, ARankThatClosesEarlyIsNamed) {
  const ShardDir dir(400, 1'000, 4);
  RunRanks(2, [&](Rank& self) {
    const int rank = self.rank;
    absl::StatusOr<std::unique_ptr<Session>> session =
        Session::Create(std::move(self.fabric), SessionOptions());
    ASSERT_TRUE(session.ok());
    absl::StatusOr<std::unique_ptr<Stream>> stream = (*session)->OpenStream(dir.Options());
    ASSERT_TRUE(stream.ok()) << stream.status();
    if (rank == 0) {
      ASSERT_TRUE((*stream)->Next().ok());
      stream->reset();
    } else {
      absl::StatusOr<Lease> lease;
      do {
        lease = (*stream)->Next();
      } while (lease.ok() && !lease->end());
      EXPECT_THAT(std::string(lease.status().message()),
                  testing::HasSubstr("rank 0 closed the stream before its end"));
      stream->reset();
    }
    self.meet();
    // Only the stream has failed.
    EXPECT_TRUE((*session)->Close().ok());
  });
}

TEST(ExchangeTest, DifferentOptionsAreAnErrorOnEveryRank) {
  const ShardDir dir(40, 1'000, 4);
  RunRanks(3, [&](Rank& self) {
    const int rank = self.rank;
    absl::StatusOr<std::unique_ptr<Session>> session =
        Session::Create(std::move(self.fabric), SessionOptions());
    ASSERT_TRUE(session.ok());
    StreamOptions options = dir.Options();
    if (rank == 1) options.seed = 7;
    EXPECT_TRUE(absl::IsFailedPrecondition((*session)->OpenStream(options).status()));
    options = dir.Options();
    if (rank == 2) options.device_buffers = 0;
    const absl::Status status = (*session)->OpenStream(options).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr("device_buffers"));
    options = dir.Options();
    EXPECT_TRUE((*session)->OpenStream(options).ok());
    self.meet();
  });
}

// What goes wrong on one rank when the others have made their part already.
TEST(ExchangeTest, LateDifferencesAreAnErrorOnEveryRank) {
  const ShardDir dir(40, 100'000, 4);
  for (const bool progress_thread : {false, true}) {
    RunRanks(3, [&](Rank& self) {
      const int rank = self.rank;
      SessionOptions session_options;
      session_options.progress_thread = progress_thread;
      absl::StatusOr<std::unique_ptr<Session>> session =
          Session::Create(std::move(self.fabric), session_options);
      ASSERT_TRUE(session.ok());
      StreamOptions options = dir.Options();
      options.budget_bytes = rank == 1 ? 1'000'000 : 600'000;
      absl::Status status = (*session)->OpenStream(options).status();
      EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
      EXPECT_THAT(std::string(status.message()), testing::HasSubstr("piece_bytes"));
      options = dir.Options();
      if (rank == 2) options.budget_bytes = 1000;
      status = (*session)->OpenStream(options).status();
      EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
      EXPECT_THAT(std::string(status.message()), testing::HasSubstr("the least is"));
      if (rank != 2) {
        EXPECT_THAT(std::string(status.message()), testing::HasSubstr("failed on rank 2"));
      }
      options = dir.Options();
      if (rank == 0) options.cursor = "nonsense";
      status = (*session)->OpenStream(options).status();
      EXPECT_THAT(std::string(status.message()), testing::HasSubstr("not a stream's cursor"));
      EXPECT_TRUE((*session)->OpenStream(dir.Options()).ok());
      self.meet();
    });
  }
}

}  // namespace
}  // namespace sluice
