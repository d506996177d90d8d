// Loads by a catalog that the caller gives: every element, each byte once, and what is refused.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <functional>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "checkpoint/checkpoint_dir.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "main/fails.h"
#include "oracle/make_layout.h"
#include "oracle/random_layout.h"
#include "sluice/session.h"

namespace sluice {
namespace {

using checkpoint_test::CheckpointDir;
using checkpoint_test::ErrorOnAll;
using checkpoint_test::FileBytes;
using checkpoint_test::kRound;
using checkpoint_test::PlainTensors;
using checkpoint_test::RandomBoxTensors;
using checkpoint_test::RankTensors;
using checkpoint_test::WithSessions;
using oracle::Dice;
using session_test::Side;

using Numbers = std::vector<int64_t>;

// Ascending begins of the parts of a dimension, and its end.
Numbers RandomCuts(Dice* dice, int64_t size) {
  Numbers cuts = {0};
  while (cuts.back() < size) {
    cuts.push_back(dice->Chance(50) ? size : dice->Between(cuts.back() + 1, size));
  }
  return cuts;
}

// Writes tensors as arrays of one format of our own: boxes with dimensions in random orders, at
// random places of three files.
class ArrayWriter {
 public:
  ArrayWriter(Dice* dice, const CheckpointDir& dir) : dice_(dice), dir_(dir) {}

  void Add(const TensorTransfer& tensor, size_t number) {
    std::vector<Numbers> cuts;
    for (const int64_t size : tensor.shape) cuts.push_back(RandomCuts(dice_, size));
    std::vector<size_t> at(cuts.size(), 0);
    while (true) {
      AddBox(tensor, number, cuts, at);
      size_t d = 0;
      while (d < at.size() && ++at[d] + 1 >= std::max<size_t>(2, cuts[d].size())) at[d++] = 0;
      if (d == at.size()) return;
    }
  }

  std::vector<CheckpointEntry> Finish() {
    for (size_t i = 0; i < files_.size(); ++i) {
      std::ofstream(dir_.path() + "/" + NameOf(i), std::ios::binary) << files_[i];
    }
    return std::move(catalog_);
  }

 private:
  static std::string NameOf(size_t file) { return absl::StrCat("arrays.", file, ".bin"); }

  void AddBox(const TensorTransfer& tensor, size_t number, const std::vector<Numbers>& cuts,
              const std::vector<size_t>& at) {
    CheckpointEntry entry;
    entry.tensor = tensor.name;
    entry.dtype = tensor.src_dtype;
    std::vector<size_t> order(at.size());
    std::iota(order.begin(), order.end(), size_t{0});
    for (size_t i = order.size(); i > 1; --i) {
      std::swap(order[i - 1],
                order[static_cast<size_t>(dice_->Between(0, static_cast<int64_t>(i) - 1))]);
    }
    int64_t elements = 1;
    for (size_t d = 0; d < at.size(); ++d) {
      const int64_t begin = cuts[d][at[d]];
      const int64_t end = cuts[d].size() > 1 ? cuts[d][at[d] + 1] : begin;
      entry.offset.push_back(begin);
      entry.shape.push_back(end - begin);
      elements *= end - begin;
    }
    Numbers strides(at.size());
    int64_t stride = 1;
    for (size_t i = order.size(); i-- > 0;) {
      strides[order[i]] = stride;
      stride *= entry.shape[order[i]];
    }
    if (strides != DenseStrides(entry.shape) || dice_->Chance(50)) entry.strides = strides;
    const auto element_bytes = static_cast<size_t>(DTypeBytes(tensor.src_dtype));
    std::string bytes(static_cast<size_t>(elements) * element_bytes, '\0');
    const session_test::ElementValues values(tensor, number);
    for (int64_t e = 0; e < elements; ++e) {
      int64_t global = 0;
      int64_t place = 0;
      int64_t rest = e;
      const Numbers dense = DenseStrides(entry.shape);
      for (size_t d = 0; d < at.size(); ++d) {
        const int64_t index = rest / std::max<int64_t>(1, dense[d]);
        rest -= index * dense[d];
        global = global * tensor.shape[d] + entry.offset[d] + index;
        place += index * strides[d];
      }
      const uint64_t code = values.Source(kRound, global, 0);
      std::memcpy(bytes.data() + static_cast<size_t>(place) * element_bytes, &code, element_bytes);
    }
    const auto file = static_cast<size_t>(dice_->Between(0, 2));
    files_[file].append(static_cast<size_t>(dice_->Between(0, 70)), '?');
    entry.file = NameOf(file);
    entry.begin = static_cast<int64_t>(files_[file].size());
    entry.bytes = static_cast<int64_t>(bytes.size());
    files_[file] += bytes;
    catalog_.insert(catalog_.begin() + dice_->Between(0, static_cast<int64_t>(catalog_.size())),
                    std::move(entry));
  }

  Dice* const dice_;
  const CheckpointDir& dir_;
  std::vector<std::string> files_ = std::vector<std::string>(3);
  std::vector<CheckpointEntry> catalog_;
};

TEST(GivenCatalogTest, FillsAnyLayoutFromAnyArraysReadingEachByteOnce) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Dice dice(seed + 700);
    const int ranks = static_cast<int>(dice.Between(1, 8));
    std::vector<TensorTransfer> tensors = RandomBoxTensors(seed, 1, ranks);
    for (TensorTransfer& tensor : tensors) tensor.src = oracle::MakeLayout(1, "R");
    const CheckpointDir dir;
    ArrayWriter writer(&dice, dir);
    bool takes_all = true;
    for (size_t t = 0; t < tensors.size(); ++t) {
      writer.Add(tensors[t], t);
      takes_all = takes_all && tensors[t].dst.boxes.empty();
    }
    CheckpointOptions options;
    options.catalog = writer.Finish();
    options.piece_bytes = dice.Pick<int64_t>({64, 500, 4096, 1 << 20});
    options.budget_bytes = int64_t{4} << 20;
    std::atomic<int64_t> bytes_read = 0;
    const std::string uri = (dice.Chance(30) ? "mmap:" : "buffered:") + dir.path();
    WithSessions(ranks, [&](int rank, Session* session) {
      RankTensors mine(tensors, Side::kDestination, rank, seed);
      const auto stats = LoadCheckpoint(session, uri, mine.tensors, options);
      ASSERT_TRUE(stats.ok()) << stats.status();
      mine.ExpectHolds(kRound);
      EXPECT_EQ(stats->tensors, static_cast<int64_t>(tensors.size()));
      EXPECT_LE(stats->budget_bytes_peak, options.budget_bytes);
      bytes_read += stats->bytes_read;
      const auto info = ReadCheckpointInfo(session, uri, options);
      ASSERT_TRUE(info.ok()) << info.status();
      EXPECT_EQ(info->tensors.size(), tensors.size());
    });
    if (takes_all) {
      EXPECT_EQ(bytes_read, FileBytes(tensors));
    }
    EXPECT_LE(bytes_read, FileBytes(tensors));
    if (testing::Test::HasFailure()) FAIL() << "seed " << seed;
  }
}

// Two arrays of rows of "a", of 64 x 32 f32, in a file of 8192 bytes.
std::vector<CheckpointEntry> TwoHalves() {
  CheckpointEntry upper = {"a", "rows.bin", 0, 4096, DType::kF32, {32, 32}, {}, {}};
  CheckpointEntry lower = {"a", "rows.bin", 4096, 4096, DType::kF32, {32, 32}, {}, {32, 0}};
  return {upper, lower};
}

// Loads "a" on two ranks, which have to hear of the same error, and finds nothing written.
absl::Status LoadWith(
    const std::function<void(int rank, CheckpointOptions*, std::string* uri)>& spoil,
    size_t file_bytes = 8192) {
  const CheckpointDir dir;
  std::ofstream(dir.path() + "/rows.bin", std::ios::binary) << std::string(file_bytes, 'x');
  const std::vector<TensorTransfer> tensors = {PlainTensors(2, "S(0)").front()};
  return ErrorOnAll(2, [&](int rank, Session* session) {
    RankTensors mine(tensors, Side::kDestination, rank, 1);
    CheckpointOptions options;
    options.catalog = TwoHalves();
    std::string uri = dir.uri();
    spoil(rank, &options, &uri);
    absl::Status status = LoadCheckpoint(session, uri, mine.tensors, options).status();
    if (!status.ok()) mine.ExpectPoisoned(kRound);
    return status;
  });
}

absl::Status LoadWith(const std::function<void(CheckpointEntry*)>& spoil_second) {
  return LoadWith(
      [&](int, CheckpointOptions* options, std::string*) { spoil_second(&options->catalog[1]); });
}

TEST(GivenCatalogTest, WhatIsWrongIsSaidOnAllRanks) {
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(LoadWith([](CheckpointEntry* e) { e->bytes = 4095; }),
              Fails(kInvalid,
                    "catalog: tensor 'a' in file 'rows.bin': it has 4095 bytes, and "
                    "shape [32,32] of f32 takes 4096"));
  EXPECT_THAT(LoadWith([](CheckpointEntry* e) { e->begin = -1; }),
              Fails(kInvalid, "it begins at byte -1"));
  EXPECT_THAT(LoadWith([](CheckpointEntry* e) { e->file = "../rows.bin"; }),
              Fails(kInvalid, "../rows.bin"));
  EXPECT_THAT(LoadWith([](CheckpointEntry* e) { e->tensor = ""; }), Fails(kInvalid, "name"));
  EXPECT_THAT(
      LoadWith([](CheckpointEntry* e) {
        e->offset = {31, 0};
      }),
      Fails(kInvalid, "its 2 arrays have 8192 bytes, and a tensor of shape [63,32] has 8064"));
  EXPECT_THAT(LoadWith([](CheckpointEntry* e) {
                e->offset = {33, 0};
              }),
              Fails(kInvalid, "a tensor of shape [65,32] has 8320"));
  EXPECT_THAT(LoadWith([](CheckpointEntry* e) {
                e->shape = {64, 16};
                e->offset = {0, 0};
              }),
              Fails(kInvalid, "arrays of tensor 'a'"));  // and they overlap
  EXPECT_THAT(LoadWith([](CheckpointEntry* e) { e->offset = {32}; }),
              Fails(kInvalid, "offset has 1 numbers for 2 dimensions"));
  EXPECT_THAT(LoadWith([](CheckpointEntry* e) {
                e->offset = {-32, 0};
              }),
              Fails(kInvalid, "is no part of a tensor"));
  EXPECT_THAT(LoadWith([](CheckpointEntry* e) {
                e->strides = {33, 1};
              }),
              Fails(kInvalid, "strides [33,1] of shape [32,32] leave gaps or meet"));
  EXPECT_THAT(LoadWith([](CheckpointEntry* e) { e->dtype = DType::kI32; }),
              Fails(kInvalid, "another array of the tensor has another dtype"));
  EXPECT_THAT(LoadWith([](CheckpointEntry* e) { e->shape = Numbers(9, 1); }),
              Fails(kInvalid, "9 dimensions"));
  EXPECT_THAT(LoadWith([](CheckpointEntry* e) {
                e->shape = {int64_t{1} << 40, int64_t{1} << 40};
              }),
              Fails(kInvalid, "more than a file has"));
  EXPECT_THAT(LoadWith([](CheckpointEntry* e) { e->file = "none.bin"; }),
              Fails(absl::StatusCode::kNotFound, "none.bin"));
}

TEST(GivenCatalogTest, WhatDoesNotFitIsSaidOnAllRanks) {
  const auto rename = [](int, CheckpointOptions* options, std::string*) {
    for (CheckpointEntry& entry : options->catalog) entry.tensor = "model.a";
  };
  EXPECT_THAT(LoadWith(rename), Fails(absl::StatusCode::kNotFound,
                                      "it has 'model.a', which a rename from 'a' would take"));
  const auto one_half = [](int, CheckpointOptions* options, std::string*) {
    options->catalog.pop_back();
  };
  EXPECT_THAT(LoadWith(one_half), Fails(absl::StatusCode::kInvalidArgument,
                                        "has shape [32,32] in the checkpoint, not [64,32]"));
  const auto opaque = [](int, CheckpointOptions* options, std::string*) {
    for (CheckpointEntry& entry : options->catalog) entry.dtype = DType::kC64;
    for (CheckpointEntry& entry : options->catalog) entry.bytes *= 2;
    options->catalog[1].begin = 0;
  };
  EXPECT_THAT(LoadWith(opaque), Fails(absl::StatusCode::kInvalidArgument,
                                      "c64 in the checkpoint, which cannot be cast"));
  const auto differs = [](int rank, CheckpointOptions* options, std::string*) {
    if (rank == 1) std::swap(options->catalog[0].begin, options->catalog[1].begin);
  };
  EXPECT_THAT(LoadWith(differs), Fails(absl::StatusCode::kFailedPrecondition, "or catalog"));
  const auto is_file = [](int, CheckpointOptions*, std::string* uri) { *uri += "/x.safetensors"; };
  EXPECT_THAT(LoadWith(is_file), Fails(absl::StatusCode::kInvalidArgument, "name of a file"));
  EXPECT_THAT(LoadWith([](int, CheckpointOptions*, std::string*) {}, 8191),
              Fails(absl::StatusCode::kDataLoss,
                    "rows.bin: it has 8191 bytes, and the catalog has arrays up to byte 8192"));
}

}  // namespace
}  // namespace sluice
