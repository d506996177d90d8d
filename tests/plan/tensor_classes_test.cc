// Which tensors are planned alike, and that the numbers follow from content alone.
#include "plan/tensor_classes.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "plan/job.h"
#include "sluice/transfer.h"

namespace sluice {
namespace {

using oracle::MakeLayout;
using oracle::MakeTensor;
using oracle::RankRange;

TensorTransfer Plain(std::vector<int64_t> shape, DType dtype = DType::kF32) {
  return MakeTensor("plain", std::move(shape), dtype, MakeLayout({2}, {0, 1}, "S(0)"),
                    MakeLayout({2}, {2, 3}, "S(0)"));
}

TensorTransfer Replicated(std::vector<int64_t> shape) {
  return MakeTensor("replicated", std::move(shape), DType::kF32, MakeLayout({2}, {0, 1}, "S(0)"),
                    MakeLayout({2}, {2, 3}, "R"));
}

TensorTransfer Reduced(std::vector<int64_t> shape) {
  return MakeTensor("reduced", std::move(shape), DType::kF32, MakeLayout({2}, {0, 1}, "P(sum)"),
                    MakeLayout({2}, {2, 3}, "S(0)"));
}

TEST(TensorClassesTest, ClassesAreNumberedAsTheyCome) {
  TensorClasses classes;
  EXPECT_EQ(classes.Of(Plain({4, 4})).tensor_class, 0);
  EXPECT_EQ(classes.Of(Plain({4, 8})).tensor_class, 1);
  EXPECT_EQ(classes.Of(Plain({4, 4})).tensor_class, 0);
  EXPECT_EQ(classes.Of(Replicated({4, 4})).tensor_class, 2);
  EXPECT_EQ(classes.Of(Plain({4, 8})).tensor_class, 1);
}

TEST(TensorClassesTest, ShapesElementSizesAndLayoutsTellClassesApart) {
  TensorClasses classes;
  const int first = classes.Of(Plain({4, 4})).tensor_class;
  EXPECT_EQ(classes.Of(Plain({4, 4}, DType::kI32)).tensor_class, first);  // of one size
  EXPECT_NE(classes.Of(Plain({4, 4}, DType::kF64)).tensor_class, first);
  EXPECT_NE(classes.Of(Plain({44})).tensor_class, first);
  EXPECT_NE(classes.Of(Plain({4, 4, 1})).tensor_class, first);
  TensorTransfer cast = Plain({4, 4});
  cast.dst_dtype = DType::kBF16;
  const int down = classes.Of(cast).tensor_class;
  EXPECT_NE(down, first);
  std::swap(cast.src_dtype, cast.dst_dtype);
  EXPECT_NE(classes.Of(cast).tensor_class, down);
  TensorTransfer other = Plain({4, 4});
  other.dst = MakeLayout({2}, {3, 2}, "S(0)");
  EXPECT_NE(classes.Of(other).tensor_class, first);
  other = Plain({4, 4});
  other.dst = MakeLayout({2}, {2, 3}, "S(1)");
  EXPECT_NE(classes.Of(other).tensor_class, first);
  std::swap(other.src, other.dst);
  EXPECT_NE(classes.Of(other).tensor_class, first);
}

TEST(TensorClassesTest, NamesWindowsAndTheIdentityOfMeshesDoNot) {
  TensorClasses classes;
  TensorTransfer tensor = Plain({4, 4});
  const int first = classes.Of(tensor).tensor_class;
  tensor.name = "another";
  tensor.window = 7;
  EXPECT_EQ(classes.Of(tensor).tensor_class, first);
  const TensorTransfer again = Plain({4, 4});
  EXPECT_NE(again.src.mesh.identity(), tensor.src.mesh.identity());
  EXPECT_EQ(classes.Of(again).tensor_class, first);
}

// A mesh that is gone may leave its address to another one.
TEST(TensorClassesTest, MeshesThatAreGoneAreNotTakenForOthers) {
  TensorClasses classes;
  for (int ranks = 1; ranks <= 200; ++ranks) {
    const Layout layout = MakeLayout({ranks}, RankRange(0, ranks), "S(0)");
    EXPECT_EQ(classes.Of(MakeTensor("t", {8}, DType::kF32, layout, layout)).tensor_class,
              ranks - 1);
  }
}

TEST(TensorClassesTest, LayoutsAreNumberedWhereTheyCanMakeLargeParties) {
  TensorClasses classes;
  EXPECT_EQ(classes.Of(Plain({4, 4})).layout_pair, 0);
  EXPECT_EQ(classes.Of(Reduced({4, 4})).layout_pair, 0);
  EXPECT_EQ(classes.Of(Replicated({4, 4})).layout_pair, 1);
  EXPECT_EQ(classes.Of(Replicated({8, 4})).layout_pair, 1);  // another class
  EXPECT_EQ(classes.Of(Reduced({8})).layout_pair, 0);
  TensorTransfer other = Replicated({4, 4});
  other.src = MakeLayout({2}, {0, 1}, "S(1)");
  EXPECT_EQ(classes.Of(other).layout_pair, 2);
  EXPECT_EQ(classes.Of(Plain({5, 5})).layout_pair, 0);
  // Replicas of one rank make no party.
  TensorTransfer alone = Plain({4, 4});
  alone.dst = MakeLayout({1, 2}, {2, 3}, "R,S(0)");
  EXPECT_EQ(classes.Of(alone).layout_pair, 0);
}

}  // namespace
}  // namespace sluice
