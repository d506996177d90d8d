// Leases that point into mapped files: where they do, and where they must not.
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
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
using stream_test::ForEachLease;
using stream_test::ShardDir;
using stream_test::TakeAll;
using stream_test::WithStream;
using stream_test::WithStreams;

// The name of what is mapped at `data`; empty: memory of nobody else's.
std::string MappedAt(const void* data) {
  const auto address = reinterpret_cast<uintptr_t>(data);
  std::ifstream maps("/proc/self/maps");
  std::string line;
  while (std::getline(maps, line)) {
    uintptr_t begin = 0;
    uintptr_t end = 0;
    if (sscanf(line.c_str(), "%lx-%lx", &begin, &end) != 2) continue;
    if (address < begin || address >= end) continue;
    const size_t path = line.find('/');
    return path == std::string::npos ? "" : line.substr(path);
  }
  return "";
}

std::vector<int64_t> Sorted(std::vector<int64_t> items) {
  std::sort(items.begin(), items.end());
  return items;
}

TEST(LentTest, ALeaseIsAPlaceInTheFile) {
  const ShardDir dir(20, 5'001, 7);
  WithStream(dir.Options("mmap:"), [&](Stream* stream) {
    for (int64_t item = 0; item < 20; ++item) {
      const auto lease = stream->Next().value();
      EXPECT_EQ(MappedAt(lease.view().data), dir.FileOf(item / 7));
      EXPECT_TRUE(lease.is_batch());
      EXPECT_EQ(lease.batch().data, lease.view().data);
      dir.Expect(lease.view(), item);
    }
    EXPECT_TRUE(stream->Next()->end());
    EXPECT_EQ(stream->stats().bytes_copied, 0);
    EXPECT_EQ(stream->stats().bytes_read, 20 * 5'001);
  });
}

// Sizes, pieces, buffers, orders, epochs, threads, and reads that take a while.
TEST(LentTest, EveryByteIsRightAndNoneIsCopied) {
  for (const int64_t item_bytes : {1, 64, 4'096, 5'000, 100'001}) {
    const ShardDir dir(40, item_bytes, 9);
    for (const bool shuffle : {false, true}) {
      for (const bool in_order : {true, false}) {
        for (const bool progress_thread : {false, true}) {
          StreamOptions options = dir.Options("mmap:");
          options.order = {.shuffle = shuffle, .seed = 5, .epochs = 2, .in_order = in_order};
          options.reads.piece_bytes = 4'096;
          options.buffers.count = 3;
          InjectedDelay delay;
          if (progress_thread) delay.latency = absl::Microseconds(100);
          WithStream(
              options,
              [&](Stream* stream) {
                std::vector<int64_t> items = TakeAll(stream, dir);
                ASSERT_EQ(items.size(), 80u);
                std::vector<int64_t> twice = Every(0, 1, 40);
                twice.insert(twice.end(), twice.begin(), twice.end());
                EXPECT_EQ(Sorted(items), Sorted(twice));
                EXPECT_EQ(stream->stats().bytes, 80 * item_bytes);
                EXPECT_EQ(stream->stats().bytes_copied, 0);
              },
              progress_thread, delay);
        }
      }
    }
  }
}

// A batch lies in one place. So it is lent where its items do, and copied where files meet.
TEST(LentTest, ABatchIsLentWhereItsItemsAreNeighbours) {
  const ShardDir dir(40, 1'000, 10);
  for (const int64_t piece_bytes : {1'024, 256}) {
    StreamOptions options = dir.Options("mmap:");
    options.buffers.batch_items = 4;
    options.reads.piece_bytes = piece_bytes;
    options.order.epochs = 2;
    WithStream(options, [&](Stream* stream) {
      for (int64_t first = 0; first < 80; first += 4) {
        const auto lease = stream->Next().value();
        ASSERT_TRUE(lease.is_batch());
        const TensorView batch = lease.batch();
        EXPECT_EQ(batch.shape, (std::vector<int64_t>{4, 1'000}));
        const bool meet = first % 20 == 8;
        EXPECT_EQ(MappedAt(batch.data).empty(), meet) << first;
        for (int64_t i = 0; i < 4; ++i) {
          EXPECT_EQ(lease.item(i), (first + i) % 40);
          EXPECT_EQ(lease.view(i).data, static_cast<std::byte*>(batch.data) + i * 1'000);
          dir.Expect(lease.view(i), lease.item(i));
        }
      }
      EXPECT_TRUE(stream->Next()->end());
      EXPECT_EQ(stream->stats().bytes_copied, 4 * 4 * 1'000);
    });
  }
}

TEST(LentTest, TheLastBatchOfAnEpochIsLentThoughItIsShort) {
  const ShardDir dir(10, 512, 10);
  StreamOptions options = dir.Options("mmap:");
  options.buffers.batch_items = 4;
  options.order.epochs = 3;
  WithStream(options, [&](Stream* stream) {
    EXPECT_EQ(TakeAll(stream, dir).size(), 30u);
    EXPECT_EQ(stream->stats().bytes_copied, 0);
  });
}

TEST(LentTest, ShuffledBatchesAreCopied) {
  const ShardDir dir(64, 500, 64);
  StreamOptions options = dir.Options("mmap:");
  options.buffers.batch_items = 16;
  options.order.shuffle = true;
  WithStream(options, [&](Stream* stream) {
    ForEachLease(stream, [&](const Lease& lease) {
      EXPECT_TRUE(lease.is_batch());
      for (int64_t i = 0; i < 16; ++i) dir.Expect(lease.view(i), lease.item(i));
    });
    EXPECT_EQ(stream->stats().bytes_copied, 64 * 500);
  });
}

// The control: what bytes_copied says where something is done to the bytes, for each source.
TEST(LentTest, WhatIsTransformedIsCopied) {
  const ShardDir dir(12, 2'048, 5);
  for (const char* scheme : {"mmap:", "buffered:", "file:"}) {
    StreamOptions options = dir.Options(scheme);
    WithStream(options, [&](Stream* stream) {
      TakeAll(stream, dir);
      // Past the page cache items at odd places of a block of the file system's are copied.
      if (absl::string_view(scheme) != "file:") {
        EXPECT_EQ(stream->stats().bytes_copied, 0) << scheme;
      }
    });
    options.buffers.transform = ItemTransform{DType::kU8, DType::kF32, 2, 1};
    WithStream(options, [&](Stream* stream) {
      for (int64_t item = 0; item < 12; ++item) {
        const auto lease = stream->Next().value();
        const auto* const values = static_cast<const float*>(lease.view().data);
        for (int64_t at = 0; at < 2'048; ++at) {
          ASSERT_EQ(values[at], 2 * static_cast<float>(ShardDir::ByteOf(item, at)) + 1) << scheme;
        }
      }
      EXPECT_EQ(stream->stats().bytes_copied, 12 * 2'048) << scheme;
    });
  }
}

TEST(LentTest, LeasesOutliveTheirStreamAndSession) {
  const ShardDir dir(6, 10'000, 2);
  std::vector<Lease> leases;
  RunRanks(1, [&](Rank& self) {
    auto session = Session::Create(std::move(self.fabric), SessionOptions()).value();
    StreamOptions options = dir.Options("mmap:");
    options.buffers.count = 4;
    auto stream = OpenStream(session.get(), options).value();
    for (int i = 0; i < 3; ++i) leases.push_back(*stream->Next());
    stream.reset();
    EXPECT_TRUE(session->Close().ok());
  });
  for (int64_t item = 0; item < 3; ++item) {
    dir.Expect(leases[static_cast<size_t>(item)].view(), item);
  }
  // Nobody hears of a file that shrinks now, and nobody dies of it.
  ASSERT_EQ(truncate(dir.FileOf(0).c_str(), 0), 0);
  const TensorView gone = leases[0].view();
  EXPECT_EQ(static_cast<const uint8_t*>(gone.data)[0], 0);
  dir.Expect(leases[2].view(), 2);
}

// All mappings but those of leases go with the stream.
TEST(LentTest, AnEarlyCloseLeavesOnlyWhatIsLeased) {
  const ShardDir dir(30, 4'096, 1);
  const auto mapped_files = [&] {
    std::ifstream maps("/proc/self/maps");
    std::string line;
    int64_t files = 0;
    while (std::getline(maps, line)) files += absl::StrContains(line, dir.path()) ? 1 : 0;
    return files;
  };
  Lease kept;
  WithStream(dir.Options("mmap:"), [&](Stream* stream) {
    kept = *stream->Next();
    EXPECT_TRUE(stream->Next().ok());
    EXPECT_GT(mapped_files(), 1);
  });
  EXPECT_EQ(mapped_files(), 1);
  dir.Expect(kept.view(), 0);
  kept = Lease();
  EXPECT_EQ(mapped_files(), 0);
}

// Ranks that share an item exchange it, so its reader has it in a slot. Items of one rank are lent.
TEST(LentTest, RanksExchangeWhatTheyShareAndAreLentTheRest) {
  const ShardDir dir(31, 3'000, 4);
  for (const int ranks : {2, 3}) {
    for (const bool deals : {true, false}) {
      for (const bool progress_thread : {false, true}) {
        WithStreams(
            ranks,
            [&](int rank) {
              StreamOptions options = dir.Options("mmap:");
              if (deals) options.selection = {rank, ranks, absl::nullopt};
              return options;
            },
            [&](int rank, Stream* stream) {
              const auto first = stream->Next().value();
              EXPECT_EQ(MappedAt(first.view().data).empty(), !deals);
              std::vector<int64_t> items = TakeAll(stream, dir);
              items.insert(items.begin(), first.item());
              EXPECT_EQ(items, deals ? Every(rank, ranks, 31) : Every(0, 1, 31));
              EXPECT_EQ(stream->stats().bytes_copied, 0);
            },
            progress_thread);
      }
    }
  }
}

// Selections overlap in the middle: there each rank's items are copied out of the mapping.
TEST(LentTest, OverlappingSelectionsAreLentWhatIsTheirOwn) {
  const ShardDir dir(30, 1'000, 5);
  WithStreams(
      2,
      [&](int rank) {
        StreamOptions options = dir.Options("mmap:");
        options.selection = {rank * 10, 1, rank * 10 + 20};
        return options;
      },
      [&](int rank, Stream* stream) {
        for (int64_t item = rank * 10; item < rank * 10 + 20; ++item) {
          const auto lease = stream->Next().value();
          EXPECT_EQ(MappedAt(lease.view().data).empty(), item >= 10 && item < 20) << item;
          dir.Expect(lease.view(), item);
        }
        EXPECT_TRUE(stream->Next()->end());
      });
}

}  // namespace
}  // namespace sluice
