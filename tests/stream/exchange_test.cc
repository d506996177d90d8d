// Streams of several ranks: read once and exchanged, each rank its own items, failure of one.
#include <atomic>
#include <chrono>
#include <climits>
#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "main/fails.h"
#include "oracle/sampled.h"
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
      StreamOptions options = dir.Options();
      options.reads.slots = 5;
      options.reads.piece_bytes = 1'024;
      WithStreams(
          ranks, options,
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

TEST(ExchangeTest, EachRankItsOwnItems) {
  const ShardDir dir(61, 10'000, 4);
  std::atomic<int64_t> requests{0};
  WithStreams(
      4,
      [&](int rank) {
        StreamOptions options = dir.Options();
        options.reads.piece_bytes = 4'096;
        options.selection = {rank, 4, absl::nullopt};
        return options;
      },
      [&](int rank, Stream* stream) {
        EXPECT_EQ(TakeAll(stream, dir), Every(rank, 4, 61));
        requests += stream->stats().requests;
      });
  EXPECT_EQ(requests, 61 * 3);
}

// A rank's items have 16 tags, and it holds more of them than that. While a rank is late for the
// first one, those that are read ahead wait to be sent, and then all are sent at once.
TEST(ExchangeTest, ItemsOfOneTagStayInOrderBehindAFirstItemThatIsSlow) {
  constexpr int64_t kStep = 64;
  const ShardDir dir(kStep * 48, 128, kStep);
  for (int stream = 0; stream < oracle::Sampled(20); ++stream) {
    StreamOptions options = dir.Options();
    options.selection = {stream, kStep, absl::nullopt};
    options.reads.slots = 48;
    WithStreams(3, options, [&](int rank, Stream* items) {
      const int64_t late_ms = 15 + stream % 10;
      if (rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(late_ms));
      EXPECT_EQ(TakeAll(items, dir), Every(stream, kStep, kStep * 48));
    });
  }
}

TEST(ExchangeTest, OverlappingSelectionsShareWhatOverlaps) {
  const ShardDir dir(40, 1'000, 3);
  std::atomic<int64_t> bytes_read{0};
  WithStreams(
      3,
      [&](int rank) {
        StreamOptions options = dir.Options();
        options.selection = {rank * 10, 1, rank * 10 + 20};
        options.reads.slots = 3;
        return options;
      },
      [&](int rank, Stream* stream) {
        EXPECT_EQ(TakeAll(stream, dir), Every(rank * 10, 1, rank * 10 + 20));
        bytes_read += stream->stats().bytes_read;
      });
  EXPECT_EQ(bytes_read, 40 * 1'000);
}

// The first rank to have opened the stream fails while others are still about to.
TEST(ExchangeTest, AFailureReachesRanksThatAreStillOpening) {
  const ShardDir dir(4, 1'000, 4);
  std::filesystem::remove(dir.FileOf(0));
  for (int round = 0; round < 50; ++round) {
    StreamOptions options = dir.Options();
    options.timeout = absl::Minutes(2);
    WithStreams(4, options, [&](int, Stream* stream) {
      const absl::Status status = stream->Next().status();
      EXPECT_TRUE(absl::IsNotFound(status)) << status;
    });
  }
}

TEST(ExchangeTest, ARankThatClosesEarlyIsNamed) {
  const ShardDir dir(400, 1'000, 4);
  RunRanks(2, [&](Rank& self) {
    const int rank = self.rank;
    auto session = Session::Create(std::move(self.fabric), SessionOptions()).value();
    auto stream = OpenStream(session.get(), dir.Options()).value();
    if (rank == 0) {
      ASSERT_TRUE(stream->Next().ok());
      stream.reset();
    } else {
      absl::StatusOr<Lease> lease;
      do {
        lease = stream->Next();
      } while (lease.ok() && !lease->end());
      EXPECT_THAT(std::string(lease.status().message()),
                  testing::HasSubstr("rank 0 closed the stream before its end"));
      stream.reset();
    }
    self.meet();
    // Only the stream has failed.
    EXPECT_TRUE(session->Close().ok());
  });
}

TEST(ExchangeTest, DifferentOptionsAreAnErrorOnEveryRank) {
  const ShardDir dir(40, 1'000, 4);
  RunRanks(3, [&](Rank& self) {
    const int rank = self.rank;
    auto session = Session::Create(std::move(self.fabric), SessionOptions()).value();
    StreamOptions options = dir.Options();
    if (rank == 1) options.order.seed = 7;
    EXPECT_TRUE(absl::IsFailedPrecondition(OpenStream(session.get(), options).status()));
    options = dir.Options();
    if (rank == 2) options.buffers.count = 0;
    const absl::Status status = OpenStream(session.get(), options).status();
    EXPECT_THAT(status, Fails(absl::StatusCode::kInvalidArgument, "buffers.count is 0"));
    options = dir.Options();
    EXPECT_TRUE(OpenStream(session.get(), options).ok());
    self.meet();
  });
}

// Ranks that deal items stop far apart, most of all. Others go on, each from the merged cursor or
// all from their own ones, and may stop again. No item that was released comes twice.
TEST(ExchangeTest, ResumedRanksGetNoReleasedItemAgain) {
  const ShardDir dir(400, 100, 40);
  for (const bool in_order : {true, false}) {
    std::map<int64_t, int> times;
    std::mutex mutex;
    std::vector<std::string> cursors;
    for (const int ranks : {4, 2, 2, 3, 1}) {
      const bool last = ranks == 1;
      const auto merged =
          (cursors.empty() ? absl::StatusOr<std::string>("") : MergeCursors(cursors)).value();
      // As many ranks as before take each its own.
      const bool own = cursors.size() == static_cast<size_t>(ranks);
      std::vector<std::string> before = std::exchange(cursors, {});
      cursors.resize(static_cast<size_t>(ranks));
      WithStreams(
          ranks,
          [&](int rank) {
            StreamOptions options = dir.Options();
            options.selection = {rank, ranks, absl::nullopt};
            options.order.in_order = in_order;
            options.order.shuffle = in_order;
            options.order.cursor = own ? before[static_cast<size_t>(rank)] : merged;
            return options;
          },
          [&](int rank, Stream* stream) {
            const int items = last ? INT_MAX : rank == 0 ? 60 : 3 * rank;
            for (int i = 0; i < items; ++i) {
              const auto lease = stream->Next().value();
              if (lease.end()) break;
              const std::lock_guard<std::mutex> lock(mutex);
              ++times[lease.item()];
            }
            cursors[static_cast<size_t>(rank)] = stream->Cursor();
          });
    }
    EXPECT_EQ(times.size(), 400u);
    for (const auto& [item, count] : times) EXPECT_EQ(count, 1) << "item " << item;
  }
}

// What goes wrong on one rank when the others have made their part already.
TEST(ExchangeTest, LateDifferencesAreAnErrorOnEveryRank) {
  const ShardDir dir(40, 100'000, 4);
  for (const bool progress_thread : {false, true}) {
    RunRanks(3, [&](Rank& self) {
      const int rank = self.rank;
      auto session =
          Session::Create(std::move(self.fabric), {.progress_thread = progress_thread}).value();
      StreamOptions options = dir.Options();
      options.reads.budget_bytes = rank == 1 ? 1'000'000 : 600'000;
      absl::Status status = OpenStream(session.get(), options).status();
      EXPECT_THAT(status, Fails(absl::StatusCode::kFailedPrecondition, "piece_bytes"));
      options = dir.Options();
      if (rank == 2) options.reads.budget_bytes = 1000;
      status = OpenStream(session.get(), options).status();
      EXPECT_THAT(status, Fails(absl::StatusCode::kInvalidArgument, "the least is"));
      if (rank != 2) {
        EXPECT_THAT(std::string(status.message()), testing::HasSubstr("failed on rank 2"));
      }
      options = dir.Options();
      if (rank == 0) options.order.cursor = "nonsense";
      status = OpenStream(session.get(), options).status();
      EXPECT_THAT(std::string(status.message()), testing::HasSubstr("not a stream's cursor"));
      EXPECT_TRUE(OpenStream(session.get(), dir.Options()).ok());
      self.meet();
    });
  }
}

}  // namespace
}  // namespace sluice
