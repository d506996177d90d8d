// What is refused before anything is planned, and that the message says where.
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
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
  ExpectRefused(src, "source");
  TensorTransfer dst = GoodTensor("");
  change(&dst.dst);
  ExpectRefused(dst, text);
  ExpectRefused(dst, "target");
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

TEST(ValidateSpecTest, PartialTargets) {
  for (const char* placement : {"P(sum)", "P(avg)", "P(max)", "P(min)", "P(product)"}) {
    TensorTransfer tensor = GoodTensor("");
    tensor.dst = MakeLayout({2}, {2, 3}, placement);
    ExpectRefused(tensor, placement);
    ExpectRefused(tensor, "target");
    ExpectRefused(tensor, "mesh dimension 0");
  }
  // Nothing would be left to reduce, and yet no meaning is given to it.
  TensorTransfer single = GoodTensor("");
  single.dst = MakeLayout({2, 1}, {2, 3}, "S(0),P(max)");
  ExpectRefused(single, "mesh dimension 1");
}

TEST(ValidateSpecTest, PartialSourcesOfWhatIsNotReduced) {
  TensorTransfer tensor = GoodTensor("");
  for (const DType dtype : {DType::kF8E8M0, DType::kC64, DType::kC128, DType::kBool}) {
    tensor.src_dtype = tensor.dst_dtype = dtype;
    for (const char* placement : {"P(sum)", "P(avg)", "P(max)", "P(min)", "P(product)"}) {
      tensor.src = MakeLayout({2}, {0, 1}, placement);
      ExpectRefused(tensor, placement);
      ExpectRefused(tensor, "source");
      ExpectRefused(tensor, absl::StrCat("no reduction of ", DTypeName(dtype)));
    }
  }
  // As for targets: nothing to reduce, and yet no meaning.
  tensor.src = MakeLayout({2, 1}, {0, 1}, "S(0),P(max)");
  ExpectRefused(tensor, "mesh dimension 1");
}

constexpr DType kFloating[] = {DType::kF64,  DType::kF32,    DType::kF16,
                               DType::kBF16, DType::kF8E4M3, DType::kF8E5M2};
constexpr DType kIntegers[] = {
    DType::kI64,        DType::kI32,        DType::kI8,       DType::kU8,
    DType::kI16,        DType::kU16,        DType::kU32,      DType::kU64,
    DType::kBool,       DType::kF8E8M0,     DType::kF4E2M1x2, DType::kI4x2,
    DType::kF8E4M3Fnuz, DType::kF8E5M2Fnuz, DType::kC64,      DType::kC128};

void ExpectNoCast(DType from, DType to) {
  TensorTransfer tensor = GoodTensor("");
  tensor.src_dtype = from;
  tensor.dst_dtype = to;
  ExpectRefused(tensor, absl::StrCat("from ", DTypeName(from), " to ", DTypeName(to)));
}

TEST(ValidateSpecTest, CastsThatDoNotExist) {
  for (const DType integer : kIntegers) {
    for (const DType other : kFloating) {
      ExpectNoCast(integer, other);
      ExpectNoCast(other, integer);
    }
    for (const DType other : kIntegers) {
      if (other != integer) ExpectNoCast(integer, other);
    }
  }
}

// The smaller dtype crosses; of equal sizes, the source's.
TEST(ValidateSpecTest, CastsThatExist) {
  TransferSpec spec;
  spec.tensors = {GoodTensor("w")};
  TensorTransfer& tensor = spec.tensors[0];
  for (const DType from : kFloating) {
    for (const DType to : kFloating) {
      tensor.src_dtype = from;
      tensor.dst_dtype = to;
      EXPECT_TRUE(ValidateSpec(spec, kJobRanks).ok()) << DTypeName(from) << DTypeName(to);
      const bool at_source = DTypeBytes(to) < DTypeBytes(from);
      EXPECT_EQ(WireDType(tensor), at_source ? to : from);
    }
  }
  for (const DType integer : kIntegers) {
    tensor.src_dtype = tensor.dst_dtype = integer;
    EXPECT_TRUE(ValidateSpec(spec, kJobRanks).ok()) << DTypeName(integer);
    EXPECT_EQ(WireDType(tensor), integer);
  }
}

TEST(ValidateSpecTest, Windows) {
  for (const int window : {-1, kMaxWindow + 1, std::numeric_limits<int>::max()}) {
    TensorTransfer tensor = GoodTensor("");
    tensor.window = window;
    ExpectRefused(tensor, absl::StrCat("window is ", window));
  }
  TransferSpec spec;
  spec.tensors = {GoodTensor("first"), GoodTensor("last")};
  spec.tensors[1].window = kMaxWindow;
  EXPECT_TRUE(ValidateSpec(spec, kJobRanks).ok());
}

TEST(ValidateSpecTest, PriorityClasses) {
  TransferSpec spec;
  spec.tensors = {GoodTensor("w")};
  for (spec.priority_class = 0; spec.priority_class < kPriorityClasses; ++spec.priority_class) {
    EXPECT_TRUE(ValidateSpec(spec, kJobRanks).ok());
  }
  for (const int wrong : {-1, kPriorityClasses}) {
    spec.priority_class = wrong;
    const absl::Status status = ValidateSpec(spec, kJobRanks);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr(absl::StrCat("class is ", wrong)));
  }
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

}  // namespace
}  // namespace sluice
