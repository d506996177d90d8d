// Dense views and their strides.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "sluice/tensor.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(DenseStridesTest, CountElementsPerStep) {
  EXPECT_THAT(DenseStrides({5}), ElementsAre(1));
  EXPECT_THAT(DenseStrides({3, 4}), ElementsAre(4, 1));
  EXPECT_THAT(DenseStrides({2, 3, 4, 5}), ElementsAre(60, 20, 5, 1));
  EXPECT_THAT(DenseStrides({1, 1, 7, 1}), ElementsAre(7, 7, 1, 1));
  EXPECT_THAT(DenseStrides({2, 2, 2, 2, 2, 2, 2, 2}), ElementsAre(128, 64, 32, 16, 8, 4, 2, 1));
}

TEST(DenseStridesTest, EmptyTensorsHaveStridesThatAreNotNegative) {
  for (const auto& shape :
       std::vector<std::vector<int64_t>>{{0}, {0, 4}, {4, 0}, {3, 0, 5}, {0, 0}}) {
    const std::vector<int64_t> strides = DenseStrides(shape);
    ASSERT_THAT(strides, SizeIs(shape.size()));
    for (const int64_t stride : strides) EXPECT_GE(stride, 0);
  }
  EXPECT_THAT(DenseStrides({}), IsEmpty());
}

TEST(DenseViewTest, NamesTheMemoryAndItsShape) {
  std::byte memory[48];
  const TensorView view = DenseView(memory, {3, 8}, DType::kBF16);
  EXPECT_EQ(view.data, memory);
  EXPECT_EQ(view.byte_offset, 0);
  EXPECT_THAT(view.shape, ElementsAre(3, 8));
  EXPECT_EQ(view.dtype, DType::kBF16);
  EXPECT_EQ(view.device, DeviceKind::kCpu);
  EXPECT_EQ(view.device_ordinal, 0);
  if (!view.strides.empty()) {
    EXPECT_THAT(view.strides, ElementsAre(8, 1));
  }
}

}  // namespace
}  // namespace sluice
