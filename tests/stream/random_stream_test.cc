// A thousand streams with random options and faults: each ends with all its items, or with one
// error that says what failed, within its time, and whatever its consumer does.
#include <atomic>
#include <cstdint>
#include <string>

#include "gmock/gmock.h"
#include "oracle/random_layout.h"
#include "oracle/sampled.h"
#include "session/world.h"
#include "sluice/session.h"
#include "sluice/stream.h"
#include "stream/shard_dir.h"
#include "stream/take_all.h"

namespace sluice {
namespace {

using oracle::Dice;
using stream_test::ShardDir;

constexpr int kRuns = 1000;

StreamOptions RandomOptions(Dice* dice, const ShardDir& dir, uint64_t seed, InjectedDelay* delay) {
  StreamOptions options = dir.Options();
  options.source.uri = std::string(dice->Chance(33)   ? "file:"
                                   : dice->Chance(33) ? "mmap:"
                                                      : "buffered:") +
                       dir.path();
  options.order.shuffle = dice->Chance(50);
  options.order.seed = seed;
  options.order.epochs = dice->Between(1, 2);
  options.reads.piece_bytes = 64 * dice->Between(2, 40);
  options.buffers.batch_items = dice->Between(1, 3);
  options.order.in_order = !dice->Chance(33);
  options.reads.exchange = !dice->Chance(25);
  options.reads.hedge.enabled = dice->Chance(50);
  options.reads.hedge.extra_share_max = 0.2;
  options.reads.retry.attempts_max = static_cast<int>(dice->Between(1, 4));
  options.reads.retry.backoff = absl::Microseconds(200);
  options.reads.retry.request_timeout = absl::Milliseconds(20);
  options.timeout = absl::Minutes(2);
  delay->seed = seed;
  delay->latency = absl::Microseconds(dice->Between(0, 2) * 300);
  delay->jitter = 0.5;
  delay->tail_percent = static_cast<double>(dice->Between(0, 1)) * 5;
  delay->faults = dice->Pick<std::string>({"", "transient:0.1x3", "hang:0.01", "short:0.01",
                                           "permanent:0.01", "transient:0.3,hang:0.02"});
  return options;
}

// What one rank sees of a stream until it ends, or until it has enough.
void Consume(Stream* stream, const ShardDir& dir, int64_t enough, std::atomic<int>* ends,
             std::atomic<int>* failures) {
  int64_t items = 0;
  while (items < enough) {
    absl::StatusOr<Lease> lease = stream->Next();
    if (!lease.ok()) {
      EXPECT_FALSE(absl::IsDeadlineExceeded(lease.status())) << lease.status();
      EXPECT_FALSE(lease.status().message().empty());
      // The error stays.
      EXPECT_EQ(stream->Next().status().code(), lease.status().code());
      ++*failures;
      return;
    }
    if (lease->end()) {
      EXPECT_EQ(items, stream->items());
      ++*ends;
      return;
    }
    for (int64_t i = 0; i < lease->items(); ++i) dir.Expect(lease->view(i), lease->item(i));
    items += lease->items();
  }
  const StreamStats stats = stream->stats();
  EXPECT_LE(stats.budget_bytes_peak, stats.budget_bytes);
}

TEST(RandomStreamTest, EndsWellOrWithAnErrorInTime) {
  const ShardDir dir(24, 1'500, 5);
  std::atomic<int> ends{0};
  std::atomic<int> failures{0};
  for (const uint64_t seed : oracle::Seeds(kRuns)) {
    SCOPED_TRACE(seed);
    Dice dice(seed);
    const int ranks = static_cast<int>(dice.Chance(50) ? 1 : dice.Between(2, 3));
    InjectedDelay delay;
    const StreamOptions common = RandomOptions(&dice, dir, seed, &delay);
    const bool deal = dice.Chance(33);
    const bool progress_thread = dice.Chance(25);
    const bool leaves_early = dice.Chance(12);
    const uint64_t rank_seed = seed * 31;
    stream_test::WithStreams(
        ranks,
        [&](int rank) {
          Dice own(rank_seed + static_cast<uint64_t>(rank));
          StreamOptions options = common;
          if (deal) options.selection = {rank, ranks, absl::nullopt};
          options.reads.slots = own.Between(1, 8);
          options.buffers.count = static_cast<int>(own.Between(1, 3));
          return options;
        },
        [&](int, Stream* stream) {
          Consume(stream, dir, leaves_early && ranks == 1 ? 5 : INT64_MAX, &ends, &failures);
        },
        progress_thread, delay);
    if (testing::Test::HasFailure()) return;
  }
  // Both happen, or this looks at nothing.
  EXPECT_GT(ends, oracle::Thinned(kRuns) / 5);
  EXPECT_GT(failures, oracle::Thinned(kRuns) / 40);
}

}  // namespace
}  // namespace sluice
