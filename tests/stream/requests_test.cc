// How often storage is asked: once for each piece of an item, whoever reads it.
#include <atomic>
#include <cstdint>
#include <string>

#include "gtest/gtest.h"
#include "sluice/stream.h"
#include "stream/shard_dir.h"
#include "stream/take_all.h"

namespace sluice {
namespace {

using stream_test::Every;
using stream_test::ShardDir;
using stream_test::TakeAll;
using stream_test::WithStreams;

constexpr int64_t kItems = 23;

int64_t PiecesOf(int64_t bytes, int64_t piece_bytes) {
  return (bytes + piece_bytes - 1) / piece_bytes;
}

// Hedges and retries are off, or cannot come.
void ExpectRequests(const ShardDir& dir, const std::string& scheme, int64_t piece_bytes, int ranks,
                    bool exchange) {
  SCOPED_TRACE(testing::Message() << scheme << ", items of " << dir.item_bytes() << ", pieces of "
                                  << piece_bytes << ", " << ranks << " ranks, exchange "
                                  << exchange);
  std::atomic<int64_t> requests{0};
  std::atomic<int64_t> repeated{0};
  StreamOptions options = dir.Options(scheme);
  options.reads.piece_bytes = piece_bytes;
  options.reads.exchange = exchange;
  options.order.epochs = 2;
  WithStreams(ranks, options, [&](int, Stream* stream) {
    EXPECT_EQ(TakeAll(stream, dir).size(), static_cast<size_t>(2 * kItems));
    const StreamStats stats = stream->stats();
    requests += stats.requests;
    repeated += stats.hedges + stats.retries;
  });
  EXPECT_EQ(repeated, 0);
  const int64_t readers = exchange ? 1 : ranks;
  EXPECT_EQ(requests, readers * 2 * kItems * PiecesOf(dir.item_bytes(), piece_bytes));
}

TEST(RequestsTest, AreAsManyAsThereArePieces) {
  for (const int64_t item_bytes : {1, 4'096, 10'000, 12'288}) {
    const ShardDir dir(kItems, item_bytes, 5);
    for (const char* scheme : {"file:", "buffered:", "mmap:"}) {
      for (const int64_t piece_bytes : {1'024, 4'096, 9'984, 65'536}) {
        ExpectRequests(dir, scheme, piece_bytes, 1, true);
      }
      for (const int ranks : {2, 3}) {
        ExpectRequests(dir, scheme, 4'096, ranks, true);
        ExpectRequests(dir, scheme, 9'984, ranks, true);
        ExpectRequests(dir, scheme, 4'096, ranks, false);
      }
    }
  }
}

}  // namespace
}  // namespace sluice
