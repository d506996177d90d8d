// Checkpoints that are loaded: every element, what it costs, and what is refused.
#include <atomic>
#include <barrier>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "checkpoint/checkpoint_dir.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "main/fails.h"
#include "oracle/random_layout.h"
#include "sluice/session.h"
#include "stream/shard_dir.h"

namespace sluice {
namespace {

using checkpoint_test::CheckpointDir;
using checkpoint_test::ErrorOnAll;
using checkpoint_test::kRound;
using checkpoint_test::PlainTensors;
using checkpoint_test::RandomTensors;
using checkpoint_test::RankTensors;
using checkpoint_test::WithSessions;
using session_test::Side;
using testing::HasSubstr;

struct Sums {
  std::atomic<int64_t> bytes_read{0};
  std::atomic<int64_t> file_bytes{0};
  std::atomic<int64_t> slots_peak{0};
};

// Loads on `ranks` ranks and looks at everything.
void LoadAndCheck(const std::vector<TensorTransfer>& tensors, int ranks, uint64_t seed,
                  const std::string& uri, const CheckpointOptions& options, Sums* sums,
                  bool progress_thread = false) {
  WithSessions(
      ranks,
      [&](int rank, Session* session) {
        RankTensors mine(tensors, Side::kDestination, rank, seed);
        const auto stats = LoadCheckpoint(session, uri, mine.tensors, options).value();
        mine.ExpectHolds(kRound);
        EXPECT_LE(stats.budget_bytes_peak, options.budget_bytes);
        EXPECT_LE(stats.slots_peak, stats.slots_max);
        EXPECT_LE(stats.piece_bytes, options.piece_bytes);
        sums->bytes_read += stats.bytes_read;
        sums->file_bytes += stats.file_bytes;
      },
      progress_thread);
}

TEST(LoadCheckpointTest, IntoAnyLayoutReadingEachByteOnce) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    oracle::Dice dice(seed + 500);
    const int ranks = static_cast<int>(dice.Between(1, 8));
    const std::vector<TensorTransfer> tensors = RandomTensors(seed, 1, ranks);
    const CheckpointDir dir;
    const int files = static_cast<int>(
        dice.Between(1, std::min<int64_t>(3, static_cast<int64_t>(tensors.size()))));
    dir.Write(tensors, files, dice.Chance(50));
    CheckpointOptions options;
    options.piece_bytes = dice.Pick<int64_t>({64, 500, 4096, 1 << 20});
    options.budget_bytes = int64_t{4} << 20;
    options.slots = dice.Pick<absl::optional<int64_t>>({absl::nullopt, 1, 2, 7});
    Sums sums;
    LoadAndCheck(tensors, ranks, seed, dir.uri(), options, &sums, dice.Chance(20));
    EXPECT_EQ(sums.bytes_read, checkpoint_test::FileBytes(tensors));
    EXPECT_EQ(sums.file_bytes, checkpoint_test::FileBytes(tensors));
    if (testing::Test::HasFailure()) FAIL() << "seed " << seed;
  }
}

// Bad loads leave all memory as it was.
absl::Status LoadBadly(
    const std::vector<TensorTransfer>& tensors, int ranks, const std::string& uri,
    const CheckpointOptions& options,
    const std::function<void(int rank, std::vector<CheckpointTensor>*)>& spoil =
        [](int, std::vector<CheckpointTensor>*) {}) {
  return ErrorOnAll(ranks, [&](int rank, Session* session) {
    RankTensors mine(tensors, Side::kDestination, rank, 1);
    std::vector<CheckpointTensor> asked = mine.tensors;
    spoil(rank, &asked);
    const absl::Status status = LoadCheckpoint(session, uri, asked, options).status();
    mine.ExpectPoisoned(kRound);
    return status;
  });
}

TEST(LoadCheckpointTest, BadInputIsRefusedOnAllRanksBeforeAnythingIsWritten) {
  const std::vector<TensorTransfer> tensors = PlainTensors(3, "S(0)");
  const CheckpointDir dir;
  dir.Write(tensors, 2, true);
  const CheckpointOptions options;
  const auto with = [&](const std::function<void(CheckpointTensor*)>& change) {
    return LoadBadly(tensors, 3, dir.uri(), options,
                     [&](int, std::vector<CheckpointTensor>* asked) { change(&(*asked)[1]); });
  };
  absl::Status status = with([](CheckpointTensor* t) { t->name = "x"; });
  EXPECT_THAT(status, Fails(absl::StatusCode::kNotFound, "'x'"));
  status = with([](CheckpointTensor* t) {
    t->dtype = DType::kI32;
    t->view.dtype = DType::kI32;
  });
  EXPECT_THAT(status, Fails(absl::StatusCode::kInvalidArgument, "cannot be cast to i32"));
  // Another shape than the checkpoint's.
  std::vector<TensorTransfer> other = tensors;
  other[2].shape = {32, 64};
  status = LoadBadly(other, 3, dir.uri(), options);
  EXPECT_THAT(status, Fails(absl::StatusCode::kInvalidArgument, "[64,32]"));
  EXPECT_TRUE(absl::IsNotFound(LoadBadly(tensors, 3, dir.uri() + "/nowhere", options)));
  EXPECT_TRUE(absl::IsInvalidArgument(LoadBadly(tensors, 3, "nowhere", options)));
  // One rank alone asks for something else.
  status =
      LoadBadly(tensors, 3, dir.uri(), options, [](int rank, std::vector<CheckpointTensor>* asked) {
        if (rank == 1) (*asked)[0].name = "b2";
      });
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
}

TEST(LoadCheckpointTest, BadFilesAreNamed) {
  const std::vector<TensorTransfer> tensors = PlainTensors(2, "S(0)");
  const CheckpointOptions options;
  const auto load = [&](const std::function<void(const CheckpointDir&)>& spoil) {
    const CheckpointDir dir;
    dir.Write(tensors, 2, true);
    spoil(dir);
    absl::Status status = LoadBadly(tensors, 2, dir.uri(), options);
    EXPECT_THAT(std::string(status.message()), HasSubstr("part-1-of-2.safetensors"));
    return status;
  };
  EXPECT_TRUE(absl::IsNotFound(
      load([](const CheckpointDir& dir) { std::filesystem::remove(dir.FileOf(1, 2)); })));
  EXPECT_TRUE(absl::IsDataLoss(load([](const CheckpointDir& dir) {
    std::filesystem::resize_file(dir.FileOf(1, 2),
                                 std::filesystem::file_size(dir.FileOf(1, 2)) - 1);
  })));
  EXPECT_TRUE(absl::IsDataLoss(
      load([](const CheckpointDir& dir) { std::filesystem::resize_file(dir.FileOf(1, 2), 20); })));
  EXPECT_TRUE(absl::IsDataLoss(
      load([](const CheckpointDir& dir) { std::filesystem::resize_file(dir.FileOf(1, 2), 3); })));
  const auto overwrite = [](int64_t at, const std::string& text) {
    return [at, text](const CheckpointDir& dir) {
      std::fstream file(dir.FileOf(1, 2), std::ios::in | std::ios::out | std::ios::binary);
      file.seekp(at);
      file << text;
    };
  };
  EXPECT_TRUE(absl::IsInvalidArgument(load(overwrite(8, "[\"x\"]"))));
  EXPECT_TRUE(absl::IsInvalidArgument(load(overwrite(0, std::string(8, '\x7f')))));
  // Tensors that overlap, or lie beyond the file.
  const auto header = [&](const std::string& json) {
    return [json](const CheckpointDir& dir) {
      std::string text(8, '\0');
      text[0] = static_cast<char>(json.size());
      std::ofstream(dir.FileOf(1, 2), std::ios::binary) << text << json << std::string(8192, 'x');
    };
  };
  const std::string b = R"({"b":{"dtype":"F32","shape":[64,32],"data_offsets":)";
  EXPECT_TRUE(absl::IsInvalidArgument(load(header(absl::StrCat(
      b, R"([0,8192]},"z":{"dtype":"U8","shape":[8],"data_offsets":[8184,8192]}})")))));
  EXPECT_FALSE(load(header(absl::StrCat(b, "[8192,16384]}}"))).ok());
}

TEST(LoadCheckpointTest, StreamsGoOnMeanwhile) {
  const std::vector<TensorTransfer> tensors = RandomTensors(5, 1, 3);
  const CheckpointDir dir;
  dir.Write(tensors, 1, false);
  const stream_test::ShardDir shards(200, 1'000, 10);
  WithSessions(3, [&](int rank, Session* session) {
    StreamOptions stream_options = shards.Options();
    stream_options.reads.slots = 2;
    auto stream = OpenStream(session, stream_options).value();
    RankTensors mine(tensors, Side::kDestination, rank, 1);
    CheckpointOptions options;
    options.piece_bytes = 256;
    options.slots = 1;
    const absl::Status status = LoadCheckpoint(session, dir.uri(), mine.tensors, options).status();
    EXPECT_TRUE(status.ok()) << status;
    mine.ExpectHolds(kRound);
    int64_t items = 0;
    for (absl::StatusOr<Lease> lease = stream->Next(); lease.ok() && !lease->end();
         lease = stream->Next()) {
      shards.Expect(lease->view(), lease->item());
      ++items;
    }
    EXPECT_EQ(items, 200);
  });
}

TEST(LoadCheckpointTest, WhatCannotBeReadIsRefusedOnlyWhenAskedFor) {
  // Legal in the format: a type of four bits, nine dimensions, keys of another writer.
  const std::string json =
      R"({"__metadata__":null,"f4":{"dtype":"F4","shape":[6],"data_offsets":[0,3]},)"
      R"("nine":{"dtype":"U8","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[3,4]},)"
      R"("a":{"dtype":"U8","shape":[4],"data_offsets":[4,8],"checksum":{"of":["x"]}}})";
  const CheckpointDir dir;
  std::string text(8, '\0');
  text[0] = static_cast<char>(json.size() % 256);
  text[1] = static_cast<char>(json.size() / 256);
  std::ofstream(dir.path() + "/model.safetensors", std::ios::binary) << text << json << "____1234";
  const Layout layout = {*Mesh::Create({2}, {0, 1}), {Placement::Shard(0)}};
  const auto load = [&](const std::string& name, std::string* got) {
    absl::Status first;
    WithSessions(2, [&](int rank, Session* session) {
      std::string memory(2, '?');
      CheckpointTensor tensor;
      tensor.name = name;
      tensor.shape = {4};
      tensor.dtype = DType::kU8;
      tensor.layout = layout;
      tensor.view = DenseView(memory.data(), {2}, DType::kU8);
      const absl::Status status = LoadCheckpoint(session, dir.uri(), {tensor}, {}).status();
      if (rank == 0) {
        first = status;
        *got = memory;
      }
    });
    return first;
  };
  std::string got;
  EXPECT_TRUE(load("a", &got).ok());
  EXPECT_EQ(got, "12");
  absl::Status status = load("f4", &got);
  EXPECT_THAT(status, Fails(absl::StatusCode::kInvalidArgument, "'f4': unknown dtype \"F4\""));
  status = load("nine", &got);
  EXPECT_THAT(std::string(status.message()), HasSubstr("'nine': more than 8 dimensions"));
}

TEST(LoadCheckpointTest, TensorsBesideThoseAskedForAreIgnored) {
  const std::vector<TensorTransfer> tensors = PlainTensors(2, "S(0)");
  for (const bool with_index : {false, true}) {
    const CheckpointDir dir;
    dir.Write(tensors, 3, with_index);
    WithSessions(2, [&](int rank, Session* session) {
      RankTensors mine({tensors[0]}, Side::kDestination, rank, 1);
      const auto stats = LoadCheckpoint(session, dir.uri(), mine.tensors, {}).value();
      mine.ExpectHolds(kRound);
      EXPECT_EQ(stats.tensors_ignored, 2);
      EXPECT_EQ(stats.tensors, 1);
      EXPECT_EQ(stats.files, with_index ? 1 : 3);
    });
  }
}

TEST(LoadCheckpointTest, OneTensorMayHaveSeveralDestinations) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    std::vector<TensorTransfer> tensors = RandomTensors(seed, 1, 3);
    const size_t stored = tensors.size();
    const CheckpointDir dir;
    dir.Write(tensors, 2, seed % 2 == 0);
    // The elements' values follow from the place in the list, so the first tensor comes again
    // alone.
    WithSessions(3, [&](int rank, Session* session) {
      RankTensors first({tensors[0]}, Side::kDestination, rank, seed);
      RankTensors again({tensors[0]}, Side::kDestination, rank, seed + 1);
      RankTensors rest(tensors, Side::kDestination, rank, seed + 2);
      std::vector<CheckpointTensor> asked = rest.tensors;
      asked.push_back(first.tensors[0]);
      asked.push_back(again.tensors[0]);
      CheckpointOptions options;
      options.piece_bytes = 700;
      const auto stats = LoadCheckpoint(session, dir.uri(), asked, options).value();
      for (const RankTensors* one : {&first, &again, &rest}) one->ExpectHolds(kRound);
      EXPECT_EQ(stats.tensors, static_cast<int64_t>(stored) + 2);
      EXPECT_EQ(stats.tensors_ignored, 0);
    });
    if (testing::Test::HasFailure()) FAIL() << "seed " << seed;
  }
}

TEST(LoadCheckpointTest, SaysHowFarItIs) {
  const int64_t bytes = int64_t{1} << 20;
  TensorTransfer tensor;
  tensor.name = "w";
  tensor.shape = {bytes};
  tensor.src_dtype = tensor.dst_dtype = DType::kU8;
  tensor.src = {*Mesh::Create({2}, {0, 1}), {Placement::Shard(0)}};
  tensor.dst = tensor.src;
  const CheckpointDir dir;
  dir.Write({tensor}, 1, false);
  std::atomic<int> ranks_left = 2;  // that have not seen a load under way
  std::barrier loaded(2);
  WithSessions(2, [&](int rank, Session* session) {
    RankTensors mine({tensor}, Side::kDestination, rank, 1);
    CheckpointProgress progress;
    CheckpointOptions options;
    options.piece_bytes = 256;
    options.progress = &progress;
    std::atomic<bool> over = false;
    std::atomic<bool> seen_under_way = false;
    std::thread watcher([&] {
      while (!over) {
        const int64_t done = progress.done;
        if (done > 0 && done < bytes && progress.total == bytes) seen_under_way = true;
      }
    });
    // How long a watcher has no CPU nobody knows. All ranks load equally often.
    bool counted = false;
    for (bool again = true; again;) {
      EXPECT_TRUE(LoadCheckpoint(session, dir.uri(), mine.tensors, options).ok());
      EXPECT_EQ(progress.total, bytes);
      EXPECT_EQ(progress.done, bytes);
      if (seen_under_way && !counted) {
        counted = true;
        --ranks_left;
      }
      loaded.arrive_and_wait();
      again = ranks_left > 0 && !testing::Test::HasFailure();
      loaded.arrive_and_wait();
    }
    over = true;
    watcher.join();
    EXPECT_TRUE(seen_under_way);
    progress.total = 7;
    EXPECT_FALSE(LoadCheckpoint(session, dir.uri() + "/none", mine.tensors, options).ok());
    EXPECT_EQ(progress.total, 0);
  });
}

}  // namespace
}  // namespace sluice
