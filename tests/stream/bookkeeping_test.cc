// What a stream keeps for its slots: no more than its limits count, and with them no more than its
// budget.
#include "session/base/bookkeeping.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "session/heap_bytes.h"
#include "session/world.h"
#include "sluice/session.h"
#include "sluice/stream.h"

namespace sluice {
namespace {

using session_test::HeapBytes;
using session_test::Rank;

TEST(BookkeepingTest, CountsOnlyBeyondWhatIsFree) {
  constexpr int64_t kMiB = int64_t{1} << 20;
  const auto blocks = [](int64_t budget, int64_t block, const Bookkeeping& kept = {}) {
    return BlocksInBudget(budget, block, kept, 1);
  };
  EXPECT_EQ(blocks(16 * kMiB, 8 * kMiB), 2);
  EXPECT_EQ(blocks(64 * kMiB, kMiB), 64);
  EXPECT_EQ(blocks(4 * kMiB, 4096), 1024);
  EXPECT_EQ(blocks(4096, 4096), 1);
  EXPECT_EQ(blocks(0, 4096), 1) << "the least";
  EXPECT_EQ(blocks(4096, 4096, {.messages = 1 << 20}), 1) << "the least";
  EXPECT_EQ(blocks(kMiB, 4096, {.cells = 1 << 20}), 1) << "the least";
  for (const int64_t messages : {0, 1, 15}) {
    for (const int64_t block : {4096, 65536, 1 << 20}) {
      const int64_t each = kSlotBookkeepingBytes + messages * kMessageBookkeepingBytes;
      const int64_t count = blocks(256 * kMiB, block, {.messages = messages, .cells = 100});
      const auto beyond = [&](int64_t n) {
        return n * block +
               std::max<int64_t>(0, n * each + 100 * kCellBookkeepingBytes - kFreeBookkeepingBytes);
      };
      EXPECT_LE(beyond(count), 256 * kMiB);
      EXPECT_GT(beyond(count + 1), 256 * kMiB);
    }
  }
}

StreamOptions TinyItems(int64_t items) {
  StreamOptions options;
  options.source.item_bytes = 64;
  options.source.generator_items = items;
  options.source.generate_ahead = items;  // all that the budget holds
  options.source.generator = [](int64_t item, absl::Span<std::byte> into) {
    std::memset(into.data(), static_cast<int>(item % 251), into.size());
    return absl::OkStatus();
  };
  return options;
}

struct Full {
  int64_t heap_bytes = 0;  // by which it has grown, of all ranks together
  int64_t slots = 0;       // hedges' among them
  int64_t slot_bytes = 0;
};

// A stream whose first item is taken and held, on each rank, until all slots are in use: for as
// long as `until` says of it.
Full WhenFull(int ranks, const StreamOptions& options,
              const std::function<bool(const StreamStats&)>& until) {
  Full full;
  std::atomic<int> filled = 0;
  session_test::RunRanks(ranks, [&](Rank& self) {
    auto session = Session::Create(std::move(self.fabric), SessionOptions()).value();
    self.meet();
    const int64_t before = HeapBytes();
    self.meet();
    auto stream = OpenStream(session.get(), options).value();
    auto lease = stream->Next().value();
    bool is_full = false;
    while (filled < ranks) {
      ASSERT_TRUE(session->Poll().ok());
      if (is_full || !until(stream->stats())) continue;
      is_full = true;
      ++filled;
    }
    self.meet();
    if (self.rank == 0) {
      const StreamStats stats = stream->stats();
      full = {HeapBytes() - before, stats.slots_max, stats.slot_bytes};
    }
    self.meet();
    lease.Release();
    stream.reset();
    self.meet();
    EXPECT_TRUE(session->Close().ok());
  });
  return full;
}

// All slots hold pieces. Spare ones are not counted.
bool AllHeld(const StreamStats& stats) { return stats.slots_peak >= stats.slots_max * 8 / 9; }

// Just past a power of two the tables that are powers of two are largest.
TEST(BookkeepingTest, SlotsKeepNoMoreThanIsCounted) {
  for (const int ranks : {1, 2, 3}) {
    for (const bool in_order : {true, false}) {
      for (const bool hedges : {false, true}) {
        StreamOptions options = TinyItems(100'000);
        options.order.in_order = in_order;
        options.reads.hedge.enabled = hedges;
        options.reads.slots = 512;
        const Full few = WhenFull(ranks, options, AllHeld);
        options.reads.slots = 4096 + 64;
        const Full many = WhenFull(ranks, options, AllHeld);
        const int64_t each = (many.heap_bytes - few.heap_bytes) / ranks / (many.slots - few.slots);
        EXPECT_LE(each, kSlotBookkeepingBytes + (ranks - 1) * kMessageBookkeepingBytes)
            << ranks << " ranks, in order " << in_order << ", hedges " << hedges;
        EXPECT_GT(each, 256) << "what is kept is not counted";
        RecordProperty(absl::StrCat("bytes_", ranks, in_order, hedges), absl::StrCat(each));
      }
    }
  }
}

TEST(BookkeepingTest, CellsKeepNoMoreThanIsCounted) {
  for (const int batch : {1, 16}) {
    StreamOptions options = TinyItems(200'000);
    options.reads.slots = 16;
    options.buffers.batch_items = batch;
    const auto after_all = [](const StreamStats& stats) {
      return stats.bytes >= int64_t{64} * 240;
    };
    options.buffers.count = 256 / batch;
    const Full few = WhenFull(1, options, after_all);
    options.buffers.count = 6'144 / batch;
    const auto filled = [](const StreamStats& stats) { return stats.bytes >= int64_t{64} * 6'000; };
    const Full many = WhenFull(1, options, filled);
    const int64_t each = (many.heap_bytes - few.heap_bytes) / (6'144 - 256);
    EXPECT_LE(each, kCellBookkeepingBytes) << batch;
    EXPECT_GT(each, 64) << "what is kept is not counted";
  }
}

TEST(BookkeepingTest, TinyPiecesKeepToTheBudget) {
  for (const int ranks : {1, 2}) {
    StreamOptions options = TinyItems(100'000);
    options.reads.budget_bytes = int64_t{64} << 20;
    const Full full = WhenFull(ranks, options, AllHeld);
    EXPECT_LE(full.heap_bytes / ranks + full.slots * full.slot_bytes,
              options.reads.budget_bytes + (int64_t{4} << 20));
    EXPECT_GE(full.slots * full.slot_bytes, options.reads.budget_bytes / 3)
        << "most of it is for pieces";
  }
}

}  // namespace
}  // namespace sluice
