// What generated items saw of a trainer's updates, and how far ahead of it the generator ran.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "sluice/stream.h"
#include "stream/generated.h"
#include "stream/take_all.h"

namespace sluice {
namespace {

using stream_test::Every;
using stream_test::ExpectItems;
using stream_test::FillBytes;
using stream_test::GeneratorOptions;
using stream_test::WithStreams;

constexpr int kRanksMax = 5;

// False after a minute, which is far more than any of this takes.
bool Eventually(const std::function<bool()>& is_true) {
  for (int i = 0; i < 60'000; ++i) {
    if (is_true()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

// What a rank's trainer has published, and which version each item it made saw, from its first
// byte to its last.
struct Trainer {
  std::atomic<int64_t> version{0};
  std::atomic<int64_t> begun{0};
  std::mutex mutex;
  std::map<int64_t, std::pair<int64_t, int64_t>> seen;  // by item

  Generator MakeGenerator() {
    return [this](int64_t item, absl::Span<std::byte> into) {
      const int64_t before = version.load();
      ++begun;
      FillBytes(item, into);
      std::this_thread::yield();
      const std::lock_guard lock(mutex);
      seen[item] = {before, version.load()};
      return absl::OkStatus();
    };
  }
};
using Trainers = std::array<Trainer, kRanksMax>;

// As sluice/stream.h says of the order. Returns the items that came.
std::vector<int64_t> Train(Stream* stream, GenerateOrder order, Trainer* trainer) {
  std::vector<int64_t> items;
  absl::StatusOr<Lease> lease = stream->Next();
  while (lease.ok() && !lease->end()) {
    ExpectItems(*lease, &items);
    if (order == GenerateOrder::kOneAhead) {
      absl::StatusOr<Lease> next = stream->Next();
      ++trainer->version;
      stream->EndUpdate();
      lease = std::move(next);
      continue;
    }
    ++trainer->version;
    stream->EndUpdate();
    lease->Release();
    lease = stream->Next();
  }
  EXPECT_TRUE(lease.ok()) << lease.status();
  return items;
}

struct OrderCase {
  GenerateOrder order;
  int threads = 1;
  int64_t batch = 1;
  int ranks = 1;
  bool progress_thread = false;
  int buffers = 2;
};

constexpr int64_t kItems = 23;

void ExpectSeen(const OrderCase& c) {
  const std::string name =
      absl::StrCat("order ", static_cast<int>(c.order), ", threads ", c.threads, ", batch ",
                   c.batch, ", ranks ", c.ranks, ", progress ", c.progress_thread);
  Trainers trainers;
  std::array<std::vector<int64_t>, kRanksMax> items;
  std::array<int64_t, kRanksMax> staleness{};
  WithStreams(
      c.ranks,
      [&](int rank) {
        StreamOptions options = GeneratorOptions(c.order, kItems);
        options.source.generator = trainers[static_cast<size_t>(rank)].MakeGenerator();
        options.source.generator_threads = c.threads;
        options.buffers.batch_items = c.batch;
        options.buffers.count = c.buffers;
        return options;
      },
      [&](int rank, Stream* stream) {
        const auto self = static_cast<size_t>(rank);
        items[self] = Train(stream, c.order, &trainers[self]);
        staleness[self] = stream->stats().staleness_max;
      },
      c.progress_thread);
  const int64_t behind = c.order == GenerateOrder::kOneAhead ? 1 : 0;
  std::vector<int64_t> made;
  for (size_t rank = 0; rank < static_cast<size_t>(c.ranks); ++rank) {
    EXPECT_EQ(items[rank], Every(0, 1, kItems)) << name;
    int64_t staleness_seen = 0;
    for (const auto& [item, versions] : trainers[rank].seen) {
      const int64_t expected = std::max<int64_t>(0, item / c.batch - behind);
      EXPECT_EQ(versions.first, expected) << name << ", item " << item;
      EXPECT_EQ(versions.second, expected) << name << ", item " << item;
      made.push_back(item);
      staleness_seen = std::max(staleness_seen, item / c.batch - expected);
    }
    EXPECT_EQ(staleness[rank], staleness_seen) << name;
    // An equal share.
    EXPECT_LE(std::abs(static_cast<int64_t>(trainers[rank].seen.size()) * c.ranks - kItems),
              c.ranks)
        << name;
    EXPECT_EQ(trainers[rank].begun, static_cast<int64_t>(trainers[rank].seen.size())) << name;
  }
  std::sort(made.begin(), made.end());
  EXPECT_EQ(made, Every(0, 1, kItems)) << name << ": each once";
}

TEST(GenerateOrderTest, EachItemSeesTheUpdateThatItsOrderSays) {
  for (const GenerateOrder order : {GenerateOrder::kAfterUpdate, GenerateOrder::kOneAhead}) {
    for (const int threads : {1, 2, 8}) {
      for (const int64_t batch : {1, 4}) {
        for (const bool progress_thread : {false, true}) {
          ExpectSeen({.order = order,
                      .threads = threads,
                      .batch = batch,
                      .progress_thread = progress_thread});
        }
      }
    }
  }
}

TEST(GenerateOrderTest, RanksGoByTheirOwnUpdatesAndMakeEachItemOnce) {
  for (const GenerateOrder order : {GenerateOrder::kAfterUpdate, GenerateOrder::kOneAhead}) {
    for (const int ranks : {2, 3, 5}) {
      for (const int64_t batch : {1, 6}) {
        ExpectSeen({.order = order,
                    .threads = 2,
                    .batch = batch,
                    .ranks = ranks,
                    .progress_thread = ranks == 3});
      }
    }
  }
}

TEST(GenerateOrderTest, AfterAnUpdateOneBufferIsEnough) {
  for (const int64_t batch : {1, 4}) {
    ExpectSeen({.order = GenerateOrder::kAfterUpdate, .threads = 3, .batch = batch, .buffers = 1});
  }
}

// Nobody calls the stream while the trainer computes.
TEST(GenerateOrderTest, OneAheadTheNextBatchIsMadeWhileTheTrainerComputes) {
  for (const bool progress_thread : {false, true}) {
    Trainer trainer;
    StreamOptions options = GeneratorOptions(GenerateOrder::kOneAhead, 12);
    options.source.generator = trainer.MakeGenerator();
    options.buffers.batch_items = 2;
    options.reads.slots = 4;  // no more than it takes
    WithStreams(
        1, options,
        [&](int, Stream* stream) {
          absl::StatusOr<Lease> lease = stream->Next();
          int64_t batch = 0;
          while (lease.ok() && !lease->end()) {
            const int64_t made = std::min<int64_t>(12, 2 * (batch + 2));
            EXPECT_TRUE(Eventually([&] { return trainer.begun == made; })) << batch;
            absl::StatusOr<Lease> next = stream->Next();
            stream->EndUpdate();
            lease = std::move(next);
            ++batch;
          }
          EXPECT_EQ(batch, 6);
        },
        progress_thread);
  }
}

TEST(GenerateOrderTest, FreeItRunsAsFarAheadAsItMayAndNoFurther) {
  constexpr int64_t kBatch = 3;
  constexpr int64_t kBatches = 10;
  for (const int64_t ahead : {int64_t{1}, int64_t{2}, int64_t{4}, INT64_MAX}) {
    for (const int threads : {1, 4, 8}) {
      for (const bool in_order : {true, false}) {
        std::atomic<int64_t> calls{0};  // of Next, the one under way among them
        std::atomic<int64_t> begun{0};
        std::atomic<int> too_early{0};
        const auto allowed = [&](int64_t taken) {
          return ahead > kBatches ? kBatches * kBatch : std::min(kBatches, taken + ahead) * kBatch;
        };
        WithStreams(
            1,
            [&](int) {
              StreamOptions options = GeneratorOptions(GenerateOrder::kFree, kBatches * kBatch);
              options.source.generate_ahead = ahead;
              options.source.generator_threads = threads;
              options.buffers.batch_items = kBatch;
              options.order.in_order = in_order;
              options.source.generator = [&](int64_t item, absl::Span<std::byte> into) {
                if (item >= allowed(calls)) ++too_early;
                FillBytes(item, into);
                ++begun;
                return absl::OkStatus();
              };
              return options;
            },
            [&](int, Stream* stream) {
              for (int64_t batch = 0; batch < kBatches; ++batch) {
                ++calls;
                const auto lease = stream->Next().value();
                EXPECT_EQ(lease.items(), kBatch);
                EXPECT_TRUE(Eventually([&] { return begun == allowed(batch + 1); }))
                    << begun << " of " << allowed(batch + 1) << " after " << batch << ", "
                    << threads;
                stream->EndUpdate();
              }
              EXPECT_TRUE(stream->Next()->end());
              EXPECT_EQ(stream->stats().staleness_max, std::min(ahead, kBatches - 1));
            });
        EXPECT_EQ(too_early, 0) << ahead << ", " << threads;
      }
    }
  }
}

// The same with other threads than the consumer's, several ranks, and few slots and buffers.
TEST(GenerateOrderTest, FewSlotsAndBuffersHoldNobodyUpForGood) {
  for (const int ranks : {1, 3}) {
    for (const int64_t batch : {1, 4}) {
      for (const int buffers : {1, 2}) {
        for (const GenerateOrder order : {GenerateOrder::kFree, GenerateOrder::kAfterUpdate}) {
          Trainers trainers;
          WithStreams(
              ranks,
              [&](int rank) {
                StreamOptions options = GeneratorOptions(order, 17);
                options.source.generator = trainers[static_cast<size_t>(rank)].MakeGenerator();
                options.source.generator_threads = 2;
                options.reads.slots = 1;
                options.order.epochs = 2;
                options.buffers.batch_items = batch;
                options.buffers.count = buffers;
                return options;
              },
              [&](int rank, Stream* stream) {
                std::vector<int64_t> items =
                    Train(stream, order, &trainers[static_cast<size_t>(rank)]);
                EXPECT_EQ(items.size(), 34u);
              },
              batch == 4);
        }
      }
    }
  }
}

}  // namespace
}  // namespace sluice
