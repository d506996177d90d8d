// Streams on one rank: order, batches, transforms, limits, leases, cursors.
#include "sluice/stream.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "main/fails.h"
#include "session/world.h"
#include "sluice/session.h"
#include "stream/shard_dir.h"
#include "stream/take_all.h"

namespace sluice {
namespace {

using session_test::Rank;
using session_test::RunRanks;
using stream_test::ForEachLease;
using stream_test::ShardDir;
using stream_test::TakeAll;
using stream_test::WithStream;
using testing::ElementsAre;
using testing::HasSubstr;

// Runs `body` on one rank with a session.
void WithSession(const std::function<void(Session*)>& body) {
  RunRanks(1, [&](Rank& self) {
    body(Session::Create(std::move(self.fabric), SessionOptions()).value().get());
  });
}

void WithDelay(const StreamOptions& options, const InjectedDelay& delay,
               const std::function<void(Stream*)>& body, bool progress_thread = false) {
  WithStream(options, body, progress_thread, delay);
}

std::vector<int64_t> Range(int64_t count) { return stream_test::Every(0, 1, count); }

TEST(StreamTest, DeliversAllItemsInOrder) {
  const ShardDir dir(100, 10'000, 7);
  for (const char* scheme : {"buffered:", "file:", "mmap:"}) {
    StreamOptions options = dir.Options(scheme);
    WithStream(options, [&](Stream* stream) {
      EXPECT_EQ(stream->items(), 100);
      EXPECT_EQ(TakeAll(stream, dir), Range(100)) << scheme;
      const StreamStats stats = stream->stats();
      EXPECT_EQ(stats.items, 100);
      EXPECT_EQ(stats.bytes, 1'000'000);
      EXPECT_LE(stats.budget_bytes_peak, options.reads.budget_bytes);
    });
  }
}

TEST(StreamTest, OneSlotAndOneBufferAreEnough) {
  const ShardDir dir(20, 3'000, 3);
  StreamOptions options = dir.Options();
  options.reads.piece_bytes = 1024;
  options.reads.slots = 1;
  options.buffers.count = 1;
  for (const bool in_order : {true, false}) {
    options.order.in_order = in_order;
    WithStream(options, [&](Stream* stream) { EXPECT_EQ(TakeAll(stream, dir).size(), 20u); });
  }
}

TEST(StreamTest, BatchesDoNotReachOverEpochs) {
  const ShardDir dir(10, 1'000, 4);
  StreamOptions options = dir.Options();
  options.buffers.batch_items = 4;
  options.order.epochs = 2;
  WithStream(options, [&](Stream* stream) {
    std::vector<int64_t> sizes;
    std::vector<int64_t> epochs;
    ForEachLease(stream, [&](Lease& lease) {
      sizes.push_back(lease.items());
      epochs.push_back(lease.epoch(lease.items() - 1));
      const TensorView batch = lease.batch();
      EXPECT_EQ(batch.shape, (std::vector<int64_t>{lease.items(), 1'000}));
      for (int64_t i = 0; i < lease.items(); ++i) {
        dir.Expect(lease.view(i), lease.item(i));
        EXPECT_EQ(lease.view(i).data, static_cast<std::byte*>(batch.data) + i * 1'000);
      }
    });
    EXPECT_THAT(sizes, ElementsAre(4, 4, 2, 4, 4, 2));
    EXPECT_THAT(epochs, ElementsAre(0, 0, 0, 1, 1, 1));
  });
}

TEST(StreamTest, AskingForMoreThanThereAreBuffersIsAnErrorThatEndsNothing) {
  const ShardDir dir(10, 1'000, 10);
  WithStream(dir.Options(), [&](Stream* stream) {
    std::vector<Lease> leases;
    for (int i = 0; i < 2; ++i) {
      auto lease = stream->Next().value();
      leases.push_back(std::move(lease));
    }
    EXPECT_TRUE(absl::IsFailedPrecondition(stream->Next().status()));
    leases.clear();
    EXPECT_EQ(TakeAll(stream, dir).size(), 8u);
  });
}

TEST(StreamTest, LeasesMayBeReleasedInAnyOrderAndOutliveTheStream) {
  const ShardDir dir(10, 1'000, 10);
  StreamOptions options = dir.Options();
  options.buffers.count = 3;
  Lease kept;
  WithStream(options, [&](Stream* stream) {
    Lease first = *stream->Next();
    Lease second = *stream->Next();
    second.Release();
    Lease third = *stream->Next();
    first.Release();
    dir.Expect(third.view(), 2);
    kept = *stream->Next();
  });
  dir.Expect(kept.view(), 3);
}

// Where the items of a stream lie, each checked while others are leased.
std::set<const void*> PlacesOf(const StreamOptions& options, const ShardDir& dir) {
  std::set<const void*> places;
  WithStream(options, [&](Stream* stream) {
    std::deque<Lease> leases;
    while (true) {
      leases.push_back(*stream->Next());
      if (leases.back().end()) break;
      const TensorView view = leases.back().view();
      const auto* const data = static_cast<const std::byte*>(view.data) + view.byte_offset;
      EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % 64, 0u);
      places.insert(data);
      if (leases.size() < static_cast<size_t>(options.buffers.count)) continue;
      // What was read meanwhile has not touched it.
      if (!options.buffers.transform) dir.Expect(leases.front().view(), leases.front().item(0));
      leases.pop_front();
    }
    EXPECT_EQ(stream->stats().items, dir.items());
    EXPECT_LE(stream->stats().budget_bytes_peak, options.reads.budget_bytes);
  });
  return places;
}

TEST(StreamTest, WholeItemsAreHandedOverInTheBlocksThatTheyWereReadInto) {
  const ShardDir dir(60, 4096, 20);
  for (const char* scheme : {"buffered:", "file:"}) {
    StreamOptions options = dir.Options(scheme);
    options.reads.slots = 5;
    options.buffers.count = 3;
    EXPECT_EQ(PlacesOf(options, dir).size(), 8u) << scheme;
    options.reads.slots = 1;
    EXPECT_EQ(PlacesOf(options, dir).size(), 4u) << scheme;
  }
}

// Items are at odd places of a file that is read in whole blocks; others share a buffer, become
// something else, or come in several pieces.
TEST(StreamTest, WhatCannotBeHandedOverIsCopied) {
  const ShardDir odd(60, 5'001, 20);
  StreamOptions options = odd.Options("file:");
  options.reads.slots = 5;
  EXPECT_GT(PlacesOf(options, odd).size(), 0u);
  const ShardDir dir(60, 4096, 20);
  options = dir.Options();
  options.reads.slots = 5;
  options.reads.piece_bytes = 1024;
  EXPECT_EQ(PlacesOf(options, dir).size(), 2u);
  options.reads.piece_bytes.reset();
  options.buffers.transform = ItemTransform{DType::kU8, DType::kF32, 1.0F, 0.0F};
  EXPECT_EQ(PlacesOf(options, dir).size(), 2u);
}

TEST(StreamTest, AsTheyComeASlowReadHoldsBackNobody) {
  const ShardDir dir(40, 1'000, 40);
  StreamOptions options = dir.Options();
  options.order.in_order = false;
  options.reads.slots = 4;
  InjectedDelay delay;
  delay.latency = absl::Milliseconds(2);
  delay.tail_percent = 20;
  delay.tail_factor = 50;
  WithDelay(options, delay, [&](Stream* stream) {
    std::vector<int64_t> items = TakeAll(stream, dir);
    EXPECT_FALSE(std::is_sorted(items.begin(), items.end()));
    std::sort(items.begin(), items.end());
    EXPECT_EQ(items, Range(40));
  });
}

TEST(StreamTest, ACursorGoesOnAfterWhatWasReleased) {
  const ShardDir dir(30, 500, 30);
  for (const int way : {0, 1, 2}) {
    const bool in_order = way > 0;
    StreamOptions options = dir.Options();
    if (way == 2) options.order.shuffle_block_items = 7;
    options.order.shuffle = true;
    options.order.seed = 4;
    options.order.epochs = 2;
    options.order.in_order = in_order;
    std::vector<int64_t> all;
    WithStream(options, [&](Stream* stream) { all = TakeAll(stream, dir); });
    EXPECT_NE(std::vector<int64_t>(all.begin(), all.begin() + 30), Range(30));
    std::vector<int64_t> seen;
    std::string cursor;
    while (seen.size() < 60) {
      options.order.cursor = cursor;
      WithStream(options, [&](Stream* stream) {
        EXPECT_EQ(stream->items(), 60 - static_cast<int64_t>(seen.size()));
        for (int i = 0; i < 7; ++i) {
          auto lease = stream->Next().value();
          if (lease.end()) break;
          seen.push_back(lease.item());
        }
        Lease leased = *stream->Next();  // not released: comes again
        cursor = stream->Cursor();
        EXPECT_LE(cursor.size(), 500u);
      });
    }
    if (in_order) {
      EXPECT_EQ(seen, all);
    }
    std::sort(seen.begin(), seen.end());
    std::sort(all.begin(), all.end());
    EXPECT_EQ(seen, all);
  }
}

TEST(StreamTest, BadSourcesAreClearErrors) {
  WithSession([&](Session* session) {
    StreamOptions options;
    EXPECT_THAT(OpenStream(session, options).status().message(), HasSubstr("generator"));
    options.source.uri = "ftp://x/";
    EXPECT_THAT(OpenStream(session, options).status().message(), HasSubstr("is no source"));
    options.source.uri = "file:/nowhere/at/all";
    EXPECT_TRUE(absl::IsNotFound(OpenStream(session, options).status()));
  });
}

TEST(StreamTest, TimesWithoutEndAreGood) {
  StreamOptions options;
  options.source.item_bytes = 8;
  options.source.generator_items = 100;
  options.source.generator = [](int64_t, absl::Span<std::byte>) { return absl::OkStatus(); };
  options.timeout = absl::InfiniteDuration();
  options.reads.retry.request_timeout = absl::InfiniteDuration();
  options.reads.retry.backoff = absl::InfiniteDuration();
  WithStream(options, [](Stream* stream) { EXPECT_TRUE(stream->Next().ok()); });
}

TEST(StreamTest, ACursorIsOfItsDataSet) {
  const ShardDir one(30, 100, 10);
  const ShardDir other(30, 200, 10);
  std::string cursor;
  WithStream(one.Options(), [&](Stream* stream) {
    ASSERT_TRUE(stream->Next().ok());
    cursor = stream->Cursor();
  });
  WithSession([&](Session* session) {
    StreamOptions options = other.Options();
    options.order.cursor = cursor;
    const absl::Status status = OpenStream(session, options).status();
    EXPECT_THAT(status, Fails(absl::StatusCode::kInvalidArgument, "another data set"));
    options = one.Options();
    options.order.cursor = cursor;
    EXPECT_TRUE(OpenStream(session, options).ok());
  });
}

TEST(StreamTest, AMissingFileIsOneTypedError) {
  const ShardDir dir(30, 500, 5);
  std::filesystem::remove(dir.FileOf(3));
  WithStream(dir.Options(), [&](Stream* stream) {
    absl::StatusOr<Lease> lease;
    int items = 0;
    do {
      lease = stream->Next();
      items += lease.ok();
    } while (lease.ok() && !lease->end());
    EXPECT_TRUE(absl::IsNotFound(lease.status())) << lease.status();
    EXPECT_LE(items, 15);
    const absl::optional<ReadFailure> failure = ReadFailureOf(lease.status());
    ASSERT_TRUE(failure.has_value());
    EXPECT_EQ(failure->object, "shard-00003.bin");
    EXPECT_EQ(failure->attempts, 1);
    EXPECT_EQ(stream->Next().status(), lease.status());
  });
}

TEST(StreamTest, ATruncatedFileIsDataLoss) {
  const ShardDir dir(30, 500, 5);
  std::filesystem::resize_file(dir.FileOf(2), 700);
  WithStream(dir.Options(), [&](Stream* stream) {
    absl::StatusOr<Lease> lease;
    do {
      lease = stream->Next();
    } while (lease.ok() && !lease->end());
    EXPECT_TRUE(absl::IsDataLoss(lease.status())) << lease.status();
  });
}

TEST(StreamTest, TransientFaultsAreCountedAndOvercome) {
  const ShardDir dir(200, 100, 200);
  StreamOptions options = dir.Options();
  InjectedDelay delay;
  delay.faults = "transient:0.2";
  options.reads.retry.backoff = absl::Microseconds(100);
  options.reads.retry.attempts_max = 20;
  WithDelay(options, delay, [&](Stream* stream) {
    EXPECT_EQ(TakeAll(stream, dir), Range(200));
    EXPECT_GT(stream->stats().retries, 0);
  });
}

TEST(StreamTest, AStreamMayBeClosedAtAnyTime) {
  const ShardDir dir(50, 1'000, 10);
  for (int items = 0; items < 5; ++items) {
    StreamOptions options = dir.Options();
    InjectedDelay delay;
    delay.latency = absl::Milliseconds(1);
    WithDelay(options, delay, [&](Stream* stream) {
      for (int i = 0; i < items; ++i) ASSERT_TRUE(stream->Next().ok());
    });
  }
}

TEST(StreamTest, AHangingReadEndsInTime) {
  const ShardDir dir(20, 1'000, 10);
  StreamOptions options = dir.Options();
  InjectedDelay delay;
  delay.faults = "hang:1";
  options.reads.retry.request_timeout = absl::Milliseconds(20);
  options.reads.retry.attempts_max = 2;
  options.reads.retry.backoff = absl::Milliseconds(1);
  WithDelay(options, delay, [&](Stream* stream) {
    const absl::Status status = stream->Next().status();
    EXPECT_THAT(status, Fails(absl::StatusCode::kUnavailable, "nearly nothing came for 20ms"));
  });
}

TEST(StreamTest, NextWaitsNoLongerThanItsTimeout) {
  const ShardDir dir(20, 1'000, 10);
  for (const bool progress_thread : {false, true}) {
    StreamOptions options = dir.Options();
    InjectedDelay delay;
    delay.faults = "hang:1";
    options.timeout = absl::Milliseconds(50);
    WithDelay(
        options, delay,
        [&](Stream* stream) {
          const absl::Status status = stream->Next().status();
          EXPECT_THAT(status, Fails(absl::StatusCode::kDeadlineExceeded,
                                    "for 50ms; nothing has moved here for "));
          EXPECT_THAT(status.message(), HasSubstr("is filling"));
        },
        progress_thread);
  }
}

}  // namespace
}  // namespace sluice
