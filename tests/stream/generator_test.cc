// Who makes generated items, how long they are, and how their streams end.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "main/fails.h"
#include "session/world.h"
#include "sluice/session.h"
#include "sluice/stream.h"
#include "stream/generated.h"
#include "stream/take_all.h"

namespace sluice {
namespace {

using session_test::Rank;
using session_test::RunRanks;
using stream_test::Every;
using stream_test::ExpectItems;
using stream_test::FillBytes;
using stream_test::ForEachLease;
using stream_test::GeneratorOptions;
using stream_test::HasItem;
using stream_test::kItemBytes;
using stream_test::ShardDir;
using stream_test::WithStreams;
using testing::HasSubstr;

// How often each item is made by all ranks together.
std::map<int64_t, int> MakesOf(int ranks, const std::function<Selection(int)>& selection_of,
                               bool exchange) {
  std::mutex mutex;
  std::map<int64_t, int> makes;
  WithStreams(
      ranks,
      [&](int rank) {
        StreamOptions options = GeneratorOptions(GenerateOrder::kFree, 60);
        options.selection = selection_of(rank);
        options.reads.exchange = exchange;
        options.source.generate_ahead = 100;
        options.source.generator = [&](int64_t item, absl::Span<std::byte> into) {
          FillBytes(item, into);
          const std::lock_guard lock(mutex);
          ++makes[item];
          return absl::OkStatus();
        };
        return options;
      },
      [&](int rank, Stream* stream) {
        const Selection selection = selection_of(rank);
        std::vector<int64_t> items;
        ForEachLease(stream, [&](const Lease& lease) { ExpectItems(lease, &items); });
        EXPECT_EQ(items, Every(selection.first, selection.step, 60));
      });
  return makes;
}

void ExpectMakes(const std::map<int64_t, int>& makes, int times) {
  EXPECT_EQ(makes.size(), 60u);
  for (const auto& [item, count] : makes) EXPECT_EQ(count, times) << item;
}

TEST(GeneratorRanksTest, EachItemIsMadeOnceBetweenThoseWhoShareIt) {
  for (const int ranks : {1, 2, 3, 4, 5}) {
    ExpectMakes(MakesOf(
                    ranks, [](int) { return Selection(); }, true),
                1);
    // Each rank its own items.
    ExpectMakes(MakesOf(
                    ranks,
                    [&](int rank) {
                      return Selection{rank, ranks};
                    },
                    true),
                1);
    // One has all, the others parts of it.
    ExpectMakes(MakesOf(
                    ranks,
                    [](int rank) {
                      return Selection{0, rank + 1};
                    },
                    true),
                1);
  }
  ExpectMakes(MakesOf(
                  3, [](int) { return Selection(); }, false),
              3);
}

// ---- Items of varying size.

int64_t LengthOf(int64_t item) { return item % 5 == 4 ? kItemBytes : item * 4 % kItemBytes; }

StreamOptions SizedOptions(int64_t items) {
  StreamOptions options = GeneratorOptions(GenerateOrder::kFree, items);
  options.source.sized_generator = [](int64_t item,
                                      absl::Span<std::byte> into) -> absl::StatusOr<int64_t> {
    std::fill(into.begin(), into.end(), std::byte{0xEE});
    FillBytes(item, into.first(static_cast<size_t>(LengthOf(item))));
    return LengthOf(item);
  };
  return options;
}

TEST(SizedGeneratorTest, AnItemIsAsLongAsWasMadeOnAllRanks) {
  for (const int ranks : {1, 2, 4}) {
    for (const int64_t batch : {1, 3}) {
      StreamOptions options = SizedOptions(40);
      options.buffers.batch_items = batch;
      options.order.epochs = 2;
      WithStreams(
          ranks, options,
          [&](int, Stream* stream) {
            int64_t items = 0;
            int64_t bytes = 0;
            ForEachLease(stream, [&](const Lease& lease) {
              for (int64_t i = 0; i < lease.items(); ++i, ++items) {
                const int64_t item = lease.item(i);
                EXPECT_EQ(item, items % 40);
                EXPECT_TRUE(HasItem(lease.view(i), item, LengthOf(item))) << item;
                bytes += LengthOf(item);
              }
            });
            EXPECT_EQ(items, 80);
            EXPECT_EQ(stream->stats().bytes, bytes);
          },
          batch == 3);
    }
  }
}

TEST(SizedGeneratorTest, ABatchIsOfEqualItemsAlone) {
  static constexpr int64_t kLine = 128;  // whole cache lines
  WithStreams(
      1,
      [&](int) {
        StreamOptions options = SizedOptions(8);
        options.source.item_bytes = kLine;
        options.source.sized_generator = [](int64_t item, absl::Span<std::byte> into) {
          FillBytes(item, into);
          return item < 4 ? kLine : kLine - item;
        };
        options.buffers.batch_items = 4;
        return options;
      },
      [&](int, Stream* stream) {
        absl::StatusOr<Lease> lease = stream->Next();
        ASSERT_TRUE(lease.ok()) << lease.status();
        ASSERT_TRUE(lease->is_batch());
        EXPECT_EQ(lease->batch().shape, (std::vector<int64_t>{4, kLine}));
        lease->Release();
        lease = stream->Next();
        ASSERT_TRUE(lease.ok()) << lease.status();
        EXPECT_FALSE(lease->is_batch());
        EXPECT_TRUE(HasItem(lease->view(3), 7, kLine - 7));
      });
}

TEST(SizedGeneratorTest, TransformsWhatWasMade) {
  StreamOptions options = SizedOptions(20);
  options.buffers.transform = ItemTransform{DType::kU8, DType::kF32, 0.5F, -3.0F};
  WithStreams(2, options, [&](int, Stream* stream) {
    for (int64_t item = 0; item < 20; ++item) {
      const auto lease = stream->Next().value();
      const TensorView view = lease.view();
      ASSERT_EQ(view.dtype, DType::kF32);
      ASSERT_EQ(view.shape, std::vector<int64_t>{LengthOf(item)});
      const float* const values = static_cast<const float*>(view.data);
      for (int64_t at = 0; at < LengthOf(item); ++at) {
        const auto byte = static_cast<float>(static_cast<uint8_t>(ShardDir::ByteOf(item, at)));
        ASSERT_EQ(values[at], byte * 0.5F - 3.0F);
      }
    }
  });
}

// ---- Ends.

// Takes until the stream ends with an error, which all ranks get.
void ExpectFailure(const StreamOptions& given, const std::string& text) {
  for (const int ranks : {1, 3}) {
    WithStreams(
        ranks, given,
        [&](int, Stream* stream) {
          absl::Status status;
          while (status.ok()) {
            const absl::StatusOr<Lease> lease = stream->Next();
            status = lease.status();
            ASSERT_FALSE(lease.ok() && lease->end()) << "the stream should have failed";
            stream->EndUpdate();
          }
          EXPECT_THAT(std::string(status.message()), HasSubstr(text));
        },
        ranks == 3);
  }
}

TEST(GeneratorEndsTest, WhatGoesWrongEndsTheStreamOnAllRanks) {
  StreamOptions options = SizedOptions(40);
  options.source.sized_generator = [](int64_t item, absl::Span<std::byte> into) {
    return static_cast<int64_t>(into.size()) + (item == 11 ? 1 : 0);
  };
  ExpectFailure(options, "making item 11: the generator returned 101 bytes, of at most 100");
  options.source.sized_generator = [](int64_t item, absl::Span<std::byte>) {
    return int64_t{item == 11 ? -5 : 8};
  };
  ExpectFailure(options, "the generator returned -5 bytes");
  options.source.sized_generator = [](int64_t item, absl::Span<std::byte>) {
    return int64_t{item == 11 ? 6 : 8};
  };
  options.buffers.transform = ItemTransform{DType::kF32, DType::kBF16, 1, 0};
  ExpectFailure(options, "6 bytes, which are not whole elements of 4");
  options = GeneratorOptions(GenerateOrder::kAfterUpdate, 40);
  options.source.generator_threads = 4;
  options.source.generator = [](int64_t item, absl::Span<std::byte>) {
    if (item == 12) throw std::runtime_error("no such board");
    return absl::OkStatus();
  };
  ExpectFailure(options, "making item 12: the generator threw: no such board");
}

TEST(GeneratorEndsTest, AStreamMayBeClosedWhileItsGeneratorRuns) {
  for (const GenerateOrder order :
       {GenerateOrder::kFree, GenerateOrder::kAfterUpdate, GenerateOrder::kOneAhead}) {
    for (const int ranks : {1, 2}) {
      std::atomic<int> running{0};
      RunRanks(ranks, [&](Rank& self) {
        auto session = Session::Create(std::move(self.fabric),
                                       {.progress_thread = order == GenerateOrder::kFree})
                           .value();
        for (int round = 0; round < 3; ++round) {
          StreamOptions options = GeneratorOptions(order, 100);
          options.source.generator_threads = 4;
          options.source.generator = [&](int64_t item, absl::Span<std::byte> into) {
            ++running;
            std::this_thread::sleep_for(std::chrono::milliseconds(2));
            FillBytes(item, into);
            --running;
            return absl::OkStatus();
          };
          auto stream = OpenStream(session.get(), options).value();
          if (round > 0) {
            EXPECT_TRUE(stream->Next().ok());
          }
          if (round > 1) stream->EndUpdate();
          self.meet();
          stream.reset();
          self.meet();
          EXPECT_EQ(running, 0);
          self.meet();
        }
        EXPECT_TRUE(session->Close().ok());
      });
    }
  }
}

TEST(GeneratorEndsTest, MemoryForTwoBatchesIsWhatOneAheadTakes) {
  RunRanks(1, [&](Rank& self) {
    auto session = Session::Create(std::move(self.fabric), SessionOptions()).value();
    StreamOptions options = GeneratorOptions(GenerateOrder::kOneAhead, 12);
    options.source.generator = [](int64_t, absl::Span<std::byte>) { return absl::OkStatus(); };
    options.buffers.batch_items = 2;
    options.reads.slots = 3;
    EXPECT_THAT(OpenStream(session.get(), options).status(),
                Fails(absl::StatusCode::kInvalidArgument,
                      testing::AllOf(HasSubstr("memory for two batches, 4 items of 4096 bytes"),
                                     HasSubstr("and slots 3 hold 3"))));
    options.reads.slots = 4;
    EXPECT_TRUE(OpenStream(session.get(), options).ok());
    options.source.generator_items = 3;  // there is no second batch of two
    options.reads.slots = 3;
    EXPECT_TRUE(OpenStream(session.get(), options).ok());
  });
}

}  // namespace
}  // namespace sluice
