// Streams whose blocks of items are shuffled: what comes, and how it is read.
#include <algorithm>
#include <barrier>
#include <set>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "sluice/stream.h"
#include "stream/shard_dir.h"
#include "stream/take_all.h"

namespace sluice {
namespace {

using stream_test::Every;
using stream_test::ShardDir;
using stream_test::TakeAll;
using stream_test::WithStream;

StreamOptions Blocks(const ShardDir& dir, int64_t block) {
  StreamOptions options = dir.Options();
  options.order.shuffle = true;
  options.order.seed = 9;
  options.order.shuffle_block_items = block;
  return options;
}

TEST(BlockOrderStream, EachItemComesOnceWhateverTheBlock) {
  const ShardDir dir(101, 4096, 30);
  for (const char* scheme : {"buffered:", "file:", "mmap:"}) {
    for (const int64_t block : {1, 2, 16, 101, 1000}) {
      for (const int64_t slots : {1, 3, 20, 64}) {
        StreamOptions options = Blocks(dir, block);
        options.source.uri = scheme + dir.path();
        options.reads.slots = slots;
        options.order.in_order = slots != 20;
        WithStream(
            options,
            [&](Stream* stream) {
              std::vector<int64_t> items = TakeAll(stream, dir);
              std::sort(items.begin(), items.end());
              EXPECT_EQ(items, Every(0, 1, 101)) << block << " " << slots;
            },
            slots == 3);
      }
    }
  }
}

// With room for four blocks, a block comes as one stretch. The first item of all is read alone.
TEST(BlockOrderStream, ReadsAreLong) {
  const ShardDir dir(128, 4096, 128);
  for (const char* scheme : {"buffered:", "file:"}) {
    StreamOptions options = Blocks(dir, 16);
    options.source.uri = scheme + dir.path();
    options.reads.slots = 64;
    int64_t requests = 0;
    WithStream(options, [&](Stream* stream) {
      EXPECT_EQ(TakeAll(stream, dir).size(), 128u);
      const StreamStats stats = stream->stats();
      EXPECT_GE(stats.read_runs, 8);
      EXPECT_LE(stats.read_runs, 24);
      requests = stats.requests;
    });
    // Neighbours are one request, both ways around.
    EXPECT_LE(requests, 40) << scheme;
    options.order.shuffle_block_items = absl::nullopt;
    WithStream(options, [&](Stream* stream) {
      EXPECT_EQ(TakeAll(stream, dir).size(), 128u);
      EXPECT_GT(stream->stats().read_runs, 100);
      EXPECT_EQ(stream->stats().requests, 128);
    });
  }
}

// Ranks that share all items read each once between them, and wait for no group of another's.
TEST(BlockOrderStream, RanksThatShareAndRanksThatDeal) {
  const ShardDir dir(90, 3000, 20);
  for (const bool deals : {false, true}) {
    for (const int64_t slots : {1, 4, 40}) {
      std::vector<std::vector<int64_t>> taken(3);
      stream_test::WithStreams(
          3,
          [&](int rank) {
            StreamOptions options = Blocks(dir, 12);
            options.order.epochs = 2;
            options.reads.slots = slots;
            if (deals) options.selection = {rank, 3, absl::nullopt};
            return options;
          },
          [&](int rank, Stream* stream) {
            taken[static_cast<size_t>(rank)] = TakeAll(stream, dir);
          });
      if (!deals) {
        EXPECT_EQ(taken[0], taken[1]);
        EXPECT_EQ(taken[0].size(), 180u);
        continue;
      }
      std::multiset<int64_t> all;
      for (const std::vector<int64_t>& items : taken) all.insert(items.begin(), items.end());
      for (int64_t item = 0; item < 90; ++item) EXPECT_EQ(all.count(item), 2u);
    }
  }
}

// One rank gives its only buffer back when the other one has the next batch. So no read may wait
// for what only the rank that keeps it can take.
TEST(BlockOrderStream, RanksThatShareMayWaitForEachOther) {
  const ShardDir dir(96, 1000, 8);
  std::barrier<> step(2);
  stream_test::WithStreams(
      2,
      [&](int rank) {
        StreamOptions options = Blocks(dir, 16);
        options.reads.slots = 8;
        options.buffers.batch_items = 3;
        options.buffers.count = rank == 0 ? 1 : 3;
        return options;
      },
      [&](int rank, Stream* stream) {
        Lease held;
        for (int batch = 0; batch < 32; ++batch) {
          absl::StatusOr<Lease> lease = stream->Next();
          EXPECT_TRUE(lease.ok()) << batch << ": " << lease.status();
          if (!lease.ok()) return step.arrive_and_drop();
          held = *std::move(lease);
          if (rank == 0 || batch > 0) step.arrive_and_wait();
          if (rank == 0) held.Release();
        }
        if (rank == 1) step.arrive_and_wait();
      },
      /*progress_thread=*/true);
}

}  // namespace
}  // namespace sluice
