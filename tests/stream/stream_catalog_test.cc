// A stream's catalog: an index that is given, and the shapes of what lies in files.
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "main/fails.h"
#include "main/own_folder.h"
#include "session/world.h"
#include "sluice/session.h"
#include "sluice/stream.h"
#include "storage/format/npy.h"
#include "stream/shard_dir.h"
#include "stream/take_all.h"

namespace sluice {
namespace {

using stream_test::Every;
using stream_test::ForEachLease;
using stream_test::ShardDir;
using stream_test::TakeAll;
using stream_test::WithStream;
using stream_test::WithStreams;

// The items of a directory of three in one file, the last one first.
constexpr char kBackwards[] = R"({"version": 1, "format": "raw", "items": 3, "objects": [
    {"name": "shard-00000.bin", "ranges": [[200, 100], [100, 100], [0, 100]]}]})";

TEST(StreamCatalogTest, AGivenIndexTakesThePlaceOfTheOneBesideTheObjects) {
  const ShardDir dir(3, 100, 3);
  StreamOptions options = dir.Options();
  options.source.index = kBackwards;
  for (const bool is_beside : {true, false}) {
    if (!is_beside) std::filesystem::remove(dir.path() + "/index.json");
    WithStream(options, [&](Stream* stream) {
      ForEachLease(stream, [&](Lease& lease) { dir.Expect(lease.view(), 2 - lease.item()); });
      EXPECT_EQ(stream->stats().items, 3);
    });
  }
}

TEST(StreamCatalogTest, ABadIndexIsAnErrorOnEveryRank) {
  const ShardDir dir(3, 100, 3);
  session_test::RunRanks(2, [&](session_test::Rank& self) {
    StreamOptions options = dir.Options();
    if (self.rank == 0) options.source.index = "{}";
    const auto session = Session::Create(std::move(self.fabric), SessionOptions()).value();
    EXPECT_THAT(OpenStream(session.get(), options).status(),
                Fails(absl::StatusCode::kInvalidArgument, "there is no \"version\""));
    EXPECT_TRUE(session->Close().ok());
  });
}

// Rank 0's index is all ranks', where they exchange. Otherwise each has its own.
TEST(StreamCatalogTest, AGivenIndexIsThatOfRank0) {
  const ShardDir dir(6, 100, 6);
  const auto index_of = [](int64_t items) {
    return absl::StrCat(R"({"version": 1, "format": "raw", "items": )", items,
                        R"(, "objects": [{"name": "shard-00000.bin", "items": )", items,
                        R"(, "item_bytes": 100}]})");
  };
  std::filesystem::remove(dir.path() + "/index.json");
  for (const bool exchange : {true, false}) {
    for (const bool others : {true, false}) {
      if (!exchange && !others) continue;
      WithStreams(
          3,
          [&](int rank) {
            StreamOptions options = dir.Options();
            options.reads.exchange = exchange;
            if (rank == 0 || others) options.source.index = index_of(rank == 0 ? 4 : 6);
            return options;
          },
          [&](int rank, Stream* stream) {
            EXPECT_EQ(TakeAll(stream, dir), Every(0, 1, exchange || rank == 0 ? 4 : 6));
          });
    }
  }
}

// Batches of a .npy of six numbers.
void CheckNumbers(const std::vector<int64_t>& shape, const std::vector<int64_t>& of_item) {
  const OwnFolder folder;
  const std::string path = folder.path().string();
  const std::vector<int64_t> numbers = {3, 1, 4, 1, 5, 9};
  std::ofstream file(path + "/a.npy", std::ios::binary);
  file << *NpyHeaderText(ElementType::kI64, shape);
  file.write(reinterpret_cast<const char*>(numbers.data()), 48);
  file.close();
  StreamOptions options;
  options.source.uri = "buffered:" + path;
  options.source.format = ItemFormat::kNpy;
  options.buffers.batch_items = 4;
  WithStream(options, [&](Stream* stream) {
    size_t next = 0;
    ForEachLease(stream, [&](Lease& lease) {
      const TensorView batch = lease.batch();
      std::vector<int64_t> wanted = {lease.items()};
      wanted.insert(wanted.end(), of_item.begin(), of_item.end());
      EXPECT_EQ(batch.shape, wanted);
      EXPECT_EQ(lease.view().shape, std::vector<int64_t>{1});
      for (int64_t i = 0; i < lease.items(); ++i) {
        EXPECT_EQ(static_cast<const int64_t*>(batch.data)[i], numbers.at(next++));
      }
    });
    EXPECT_EQ(next, numbers.size());
  });
}

TEST(StreamCatalogTest, NumbersOfAnArrayOfOneDimensionAreABatchOfOneDimension) {
  CheckNumbers({6}, {});
  CheckNumbers({6, 1}, {1});
}

TEST(StreamCatalogTest, NumbersAreTransformed) {
  const OwnFolder folder;
  const std::string path = folder.path().string();
  std::ofstream(path + "/a.npy", std::ios::binary)
      << *NpyHeaderText(ElementType::kU8, {3}) << "\x01\x02\x03";
  StreamOptions options;
  options.source.uri = "buffered:" + path;
  options.source.format = ItemFormat::kNpy;
  options.buffers.batch_items = 3;
  options.buffers.transform = ItemTransform{DType::kU8, DType::kF32, 2.0F, 1.0F};
  WithStream(options, [&](Stream* stream) {
    const Lease lease = stream->Next().value();
    const TensorView batch = lease.batch();
    EXPECT_EQ(batch.shape, std::vector<int64_t>{3});
    const auto* const data = static_cast<const float*>(batch.data);
    EXPECT_THAT(std::vector<float>(data, data + 3), testing::ElementsAre(3, 5, 7));
  });
}

}  // namespace
}  // namespace sluice
