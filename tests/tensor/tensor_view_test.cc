// Dense views of C++ numbers, and who may be a source or a destination.
#include <array>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "sluice/tensor.h"

namespace sluice {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(DenseViewTest, OfNumbersKnowsTheirTypeAndMemory) {
  std::vector<float> vector(6);
  const TensorView floats = DenseView(vector, {2, 3});
  EXPECT_EQ(floats.data, vector.data());
  EXPECT_THAT(floats.shape, ElementsAre(2, 3));
  EXPECT_EQ(floats.dtype, DType::kF32);
  EXPECT_EQ(floats.device, DeviceKind::kCpu);
  std::array<uint16_t, 4> array{};
  EXPECT_EQ(DenseView(array, {4}).dtype, DType::kU16);
  int64_t plain[3] = {};
  EXPECT_EQ(DenseView(std::span(plain), {3}).dtype, DType::kI64);
  EXPECT_EQ(DTypeOfNumber<double>(), DType::kF64);
  EXPECT_EQ(DTypeOfNumber<bool>(), DType::kBool);
  EXPECT_EQ(DTypeOfNumber<int8_t>(), DType::kI8);
}

TEST(DenseViewTest, AShapeThatDoesNotFitIsNotTaken) {
  std::vector<float> vector(6);
  EXPECT_THAT(DenseView(vector, {2, 4}).shape, ElementsAre(6));
  EXPECT_THAT(DenseView(vector, {int64_t{1} << 40, int64_t{1} << 40}).shape, ElementsAre(6));
  vector.clear();
  EXPECT_THAT(DenseView(vector, {0, 4}).shape, ElementsAre(0, 4));
}

TEST(DenseViewTest, OfConstNumbersIsASourceAlone) {
  const std::vector<float> vector(6);
  const auto view = DenseView(vector, {6});
  static_assert(std::is_same_v<decltype(view), const SourceView>);
  static_assert(!std::is_convertible_v<SourceView, TensorView>);
  static_assert(!std::is_constructible_v<absl::Span<const TensorView>, std::vector<SourceView>>);
  static_assert(std::is_same_v<decltype(DenseView(std::span<const int>(), {0})), SourceView>);
  EXPECT_EQ(view.view().data, vector.data());
}

TEST(SourceViewsTest, TakesViewsOfEitherKind) {
  const std::vector<float> constant(6);
  std::vector<float> other(6);
  std::vector<TensorView> memory;
  const auto data_of = [&](const SourceViews& views) {
    std::vector<const void*> data;
    memory.clear();
    for (const TensorView& view : views.views(&memory)) data.push_back(view.data);
    return data;
  };
  EXPECT_THAT(data_of({}), IsEmpty());
  EXPECT_THAT(data_of({DenseView(other, {6})}), ElementsAre(other.data()));
  EXPECT_THAT(memory, IsEmpty());  // nothing was copied
  EXPECT_THAT(data_of({DenseView(constant, {6}), DenseView(other, {6})}),
              ElementsAre(constant.data(), other.data()));
  const std::vector<SourceView> sources = {DenseView(constant, {6})};
  EXPECT_THAT(data_of(sources), ElementsAre(constant.data()));
  const std::vector<TensorView> views = {DenseView(other, {6})};
  EXPECT_THAT(data_of(views), ElementsAre(other.data()));
  EXPECT_THAT(data_of(absl::MakeConstSpan(views)), ElementsAre(other.data()));
}

}  // namespace
}  // namespace sluice
