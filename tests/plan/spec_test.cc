// What is refused before anything is planned, and that the message says where.
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plan/job.h"
#include "plan/plan.h"
#include "sluice/layout.h"
#include "sluice/tensor.h"
#include "sluice/transfer.h"

namespace sluice {
namespace {

using oracle::MakeLayout;
using oracle::MakeTensor;
using ::testing::HasSubstr;

constexpr int kJobRanks = 4;

TensorTransfer GoodTensor(std::string name) {
  return MakeTensor(std::move(name), {8, 8}, DType::kF32, MakeLayout({2}, {0, 1}, "S(0)"),
                    MakeLayout({2}, {2, 3}, "S(1)"));
}

// Two good tensors around `bad`, which the message must name, with `text` beside it.
void ExpectRefused(const TensorTransfer& bad, const std::string& text) {
  TransferSpec spec;
  spec.tensors = {GoodTensor("before"), bad, GoodTensor("after")};
  spec.tensors[1].name = "model.layers.7.bad";
  const absl::Status status = ValidateSpec(spec, kJobRanks);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
  EXPECT_THAT(std::string(status.message()), HasSubstr("model.layers.7.bad"));
  EXPECT_THAT(std::string(status.message()), HasSubstr(text));
}

// Changes a good tensor on one side after the other.
template <typename Change>
void ExpectRefusedOnBothSides(Change change, const std::string& text) {
  TensorTransfer src = GoodTensor("");
  change(&src.src);
  ExpectRefused(src, text);
  TensorTransfer dst = GoodTensor("");
  change(&dst.dst);
  ExpectRefused(dst, text);
}

TEST(ValidateSpecTest, TakesGoodTensors) {
  TransferSpec spec;
  EXPECT_TRUE(ValidateSpec(spec, kJobRanks).ok());
  spec.tensors = {GoodTensor("a"), GoodTensor("b")};
  EXPECT_TRUE(ValidateSpec(spec, kJobRanks).ok());
}

TEST(ValidateSpecTest, RanksOutsideTheJob) {
  ExpectRefusedOnBothSides(
      [](Layout* layout) {
        *layout = MakeLayout({2}, {1, kJobRanks}, "S(0)");
      },
      "rank 4");
  ExpectRefusedOnBothSides(
      [](Layout* layout) {
        *layout = MakeLayout({3}, {0, 1000000, 2}, "R");
      },
      "1000000");
}

TEST(ValidateSpecTest, Partial) {
  for (const char* placement : {"P(sum)", "P(avg)", "P(max)", "P(min)", "P(product)"}) {
    ExpectRefusedOnBothSides(
        [placement](Layout* layout) {
          *layout = MakeLayout({2}, {0, 1}, placement);
        },
        placement);
  }
  ExpectRefusedOnBothSides(
      [](Layout* layout) {
        *layout = MakeLayout({2, 1}, {0, 1}, "S(0),P(sum)");
      },
      "P(sum)");
}

TEST(ValidateSpecTest, DTypesOfTheTwoSides) {
  TensorTransfer casting = GoodTensor("");
  casting.dst_dtype = DType::kBF16;
  ExpectRefused(casting, "bf16");
  TensorTransfer reinterpreting = GoodTensor("");
  reinterpreting.dst_dtype = DType::kI32;
  ExpectRefused(reinterpreting, "i32");
}

TEST(ValidateSpecTest, LayoutsThatDoNotFitTheTensor) {
  ExpectRefusedOnBothSides([](Layout* layout) { layout->placements = {Placement::Shard(2)}; },
                           "S(2)");
  ExpectRefusedOnBothSides(
      [](Layout* layout) { layout->placements = {Placement::StridedShard(0, 0)}; }, "SS(0,0)");
  ExpectRefusedOnBothSides(
      [](Layout* layout) {
        layout->placements = {Placement::Replicate(), Placement::Replicate()};
      },
      "2 placements");
  ExpectRefusedOnBothSides([](Layout* layout) { layout->placements.clear(); }, "0 placements");
  ExpectRefusedOnBothSides([](Layout* layout) { *layout = Layout(); }, "mesh");
}

TEST(ValidateSpecTest, Shapes) {
  const int64_t big = int64_t{1} << 32;
  for (const auto& shape :
       std::vector<std::vector<int64_t>>{{8, -1},
                                         {8, big, big},
                                         {8, 8, 1, 1, 1, 1, 1, 1, 1},
                                         {8, std::numeric_limits<int64_t>::max()}}) {
    TensorTransfer tensor = GoodTensor("");
    tensor.shape = shape;
    ExpectRefused(tensor, "shape");
  }
  // The elements fit an int64_t, but their bytes do not.
  TensorTransfer wide = GoodTensor("");
  wide.shape = {int64_t{1} << 31, int64_t{1} << 30};
  wide.src_dtype = wide.dst_dtype = DType::kF64;
  ExpectRefused(wide, "shape");
}

TEST(ValidateSpecTest, StridedShardsOfTooManyPieces) {
  const int64_t pieces = int64_t{1} << 30;
  TensorTransfer tensor = GoodTensor("");
  tensor.shape = {int64_t{1} << 31, 8};
  tensor.src.placements = {Placement::StridedShard(0, pieces)};
  ExpectRefused(tensor, "pieces");
  tensor = GoodTensor("");
  tensor.shape = {int64_t{1} << 31, 8};
  tensor.dst = MakeLayout({1, 2}, {2, 3}, "SS(0,65536),SS(0,65536)");
  ExpectRefused(tensor, "pieces");
}

// Many pieces of a short dimension are few intervals.
TEST(ValidateSpecTest, ManyPiecesOfAShortDimension) {
  TransferSpec spec;
  spec.tensors = {GoodTensor("w")};
  spec.tensors[0].src.placements = {Placement::StridedShard(0, int64_t{1} << 40)};
  EXPECT_TRUE(ValidateSpec(spec, kJobRanks).ok());
}

TEST(ValidateSpecTest, MessageTellsTheSides) {
  TransferSpec spec;
  spec.tensors = {GoodTensor("w")};
  spec.tensors[0].src.placements = {Placement::Shard(5)};
  EXPECT_THAT(std::string(ValidateSpec(spec, kJobRanks).message()), HasSubstr("source"));
  spec.tensors = {GoodTensor("w")};
  spec.tensors[0].dst.placements = {Placement::Shard(5)};
  EXPECT_THAT(std::string(ValidateSpec(spec, kJobRanks).message()), HasSubstr("target"));
}

}  // namespace
}  // namespace sluice
