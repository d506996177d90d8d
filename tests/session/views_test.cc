// Views: what is refused, and overlap against sets of bytes.
#include "session/base/views.h"

#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "main/fails.h"
#include "oracle/random_layout.h"
#include "oracle/sampled.h"
#include "session/base/memory_uses.h"

namespace sluice {
namespace {

// All bytes that a view names, with repetitions counted.
struct Bytes {
  std::set<const std::byte*> set;
  size_t count = 0;
};

Bytes BytesOf(const BoundView& view) {
  Bytes bytes;
  std::vector<const std::byte*> elements = {view.base};
  for (size_t d = 0; d < static_cast<size_t>(view.dims); ++d) {
    std::vector<const std::byte*> next;
    for (const std::byte* element : elements) {
      for (int64_t p = 0; p < view.shape[d]; ++p) {
        next.push_back(element + p * view.stride_bytes[d]);
      }
    }
    elements = std::move(next);
  }
  for (const std::byte* element : elements) {
    for (int b = 0; b < view.element_bytes; ++b) {
      bytes.set.insert(element + b);
      ++bytes.count;
    }
  }
  return bytes;
}

bool HaveCommonByte(const Bytes& a, const Bytes& b) {
  const Bytes& small = a.set.size() < b.set.size() ? a : b;
  const Bytes& large = &small == &a ? b : a;
  for (const std::byte* byte : small.set) {
    if (large.set.count(byte) > 0) return true;
  }
  return false;
}

std::vector<std::byte>& Arena() {
  static std::vector<std::byte>& arena = *new std::vector<std::byte>(1 << 16);
  return arena;
}

BoundView RandomView(oracle::Dice* dice) {
  BoundView view;
  const auto dims = static_cast<size_t>(dice->Between(1, 4));
  view.dims = static_cast<int8_t>(dims);
  view.element_bytes = dice->Pick<int8_t>({1, 2, 4, 8});
  // Mostly as slices are made: each stride a multiple of what lies below it; now and then any.
  int64_t below = 1;
  for (size_t d = dims; d-- > 0;) {
    view.shape[d] = dice->Between(1, 5);
    const int64_t stride =
        dice->Chance(70) ? below * dice->Pick<int64_t>({1, 1, 2, 3}) : dice->Between(0, 30);
    view.stride_bytes[d] = stride * view.element_bytes;
    below = std::max(below, stride * view.shape[d]);
  }
  if (dice->Chance(30)) {
    std::swap(view.shape[0], view.shape[dims - 1]);
    std::swap(view.stride_bytes[0], view.stride_bytes[dims - 1]);
  }
  view.base = Arena().data() + dice->Between(0, 200);
  return view;
}

// Rows of `width` elements, `stride` elements apart.
BoundView Rows(int64_t first, int64_t rows, int64_t width, int64_t stride) {
  BoundView view;
  view.dims = 2;
  view.element_bytes = 2;
  view.base = Arena().data() + 2 * first;
  view.shape = {rows, width};
  view.stride_bytes = {2 * stride, 2};
  return view;
}

TEST(OverlapTest, AgreesWithSetsOfBytes) {
  oracle::Dice dice(1);
  int overlapping = 0;
  constexpr int kPairs = oracle::Sampled(20000);
  for (int i = 0; i < kPairs; ++i) {
    const BoundView a = RandomView(&dice), b = RandomView(&dice);
    const bool expected = HaveCommonByte(BytesOf(a), BytesOf(b));
    ASSERT_EQ(Overlap(a, b), expected) << i;
    ASSERT_EQ(Overlap(b, a), expected) << i;
    overlapping += expected ? 1 : 0;
  }
  EXPECT_GT(overlapping, kPairs / 10);
  EXPECT_LT(overlapping, kPairs / 10 * 9);
}

// However many rows there are: it is their distance that matters.
TEST(OverlapTest, ColumnsOfOneTensorDoNot) {
  constexpr int64_t kColumns = 16, kRows = 4096;  // of rows: 16 million in all
  const auto column = [](int64_t first, int64_t width = 1) {
    BoundView view = Rows(first, kRows, width, kColumns);
    view.dims = 3;
    view.shape = {kRows, kRows, width};
    view.stride_bytes = {2 * kRows * kColumns, 2 * kColumns, 2};
    return view;
  };
  for (int64_t a = 0; a < kColumns; ++a) {
    for (int64_t b = a + 1; b < kColumns; ++b) {
      ASSERT_FALSE(Overlap(column(a), column(b))) << a << " " << b;
      ASSERT_FALSE(Overlap(column(b), column(a))) << a << " " << b;
    }
  }
  EXPECT_TRUE(Overlap(column(7, 2), column(8)));
  EXPECT_FALSE(Overlap(column(7, 2), column(9)));
  // The first row of the one is the last row of the other.
  const BoundView last = column(7 + (kRows * kRows - 1) * kColumns);
  EXPECT_TRUE(Overlap(column(7), last));
  EXPECT_TRUE(Overlap(last, column(7)));
  EXPECT_FALSE(Overlap(column(8), last));
  EXPECT_FALSE(Overlap(column(7), column(7 + kRows * kRows * kColumns)));
}

TEST(OverlapTest, ViewsWithoutElementsNever) {
  EXPECT_FALSE(Overlap(BoundView(), Rows(0, 2, 2, 2)));
  EXPECT_FALSE(Overlap(BoundView(), BoundView()));
}

TEST(CheckAliasingTest, DestinationsShareWithNobody) {
  const std::vector<absl::string_view> names = {"q", "k"};
  const BoundView q = Rows(0, 8, 4, 10), k = Rows(4, 8, 4, 10), other = Rows(1000, 8, 4, 10);
  EXPECT_TRUE(CheckAliasing({{q, k}}, {{other, BoundView()}}, names).ok());
  EXPECT_TRUE(CheckAliasing({{q, q}}, {{other, k}}, names).ok()) << "sources may share";
  const absl::Status in_place = CheckAliasing({{q, other}}, {{k, q}}, names);
  EXPECT_THAT(in_place, Fails(absl::StatusCode::kInvalidArgument,
                              testing::AllOf(testing::HasSubstr("source of tensor 0 'q'"),
                                             testing::HasSubstr("destination of tensor 1 'k'"))));
  EXPECT_FALSE(CheckAliasing({{BoundView(), BoundView()}}, {{q, q}}, names).ok());
}

TEST(CheckAliasingTest, FindsWhatComparingAllPairsFinds) {
  oracle::Dice dice(2);
  const std::vector<absl::string_view> names(4, "t");
  int good = 0;
  constexpr int kSets = oracle::Sampled(3000);
  for (int i = 0; i < kSets; ++i) {
    std::vector<BoundView> views;
    for (int v = 0; v < 8; ++v) {
      views.push_back(RandomView(&dice));
      views.back().base += dice.Between(0, 6000);
    }
    bool expected = true;
    for (size_t a = 0; a < views.size(); ++a) {
      for (size_t b = std::max<size_t>(a + 1, 4); b < views.size(); ++b) {
        expected &= !HaveCommonByte(BytesOf(views[a]), BytesOf(views[b]));
      }
    }
    const auto all = absl::MakeConstSpan(views);
    ASSERT_EQ(CheckAliasing(all.first(4), all.subspan(4), names).ok(), expected) << i;
    good += expected ? 1 : 0;
  }
  EXPECT_GT(good, kSets / 30);
  EXPECT_LT(good, kSets / 30 * 29);
}

class BindViewTest : public testing::Test {
 protected:
  absl::Status Bind(bool writable = false) {
    return BindView(view_, need_, MemoryRules(), writable, &bound_);
  }
  void ExpectRefused(const std::string& text, bool writable = false) {
    EXPECT_THAT(Bind(writable), Fails(absl::StatusCode::kInvalidArgument, text));
  }
  TensorView view_ = DenseView(Arena().data(), {3, 4}, DType::kF32);
  ViewNeed need_ = {{3, 4}, DType::kF32};
  BoundView bound_;
};

TEST_F(BindViewTest, TranslatesStrides) {
  view_.strides = {8, 2};
  view_.byte_offset = 12;
  ASSERT_TRUE(Bind(true).ok());
  EXPECT_EQ(bound_.base, Arena().data() + 12);
  EXPECT_EQ(bound_.stride_bytes[0], 32);
  EXPECT_EQ(bound_.stride_bytes[1], 8);
  view_.strides.clear();
  ASSERT_TRUE(Bind(true).ok());
  EXPECT_EQ(bound_.stride_bytes[0], 16);
  EXPECT_EQ(bound_.stride_bytes[1], 4);
}

TEST_F(BindViewTest, NamesWhatIsWrong) {
  need_.shape = {4, 3};
  ExpectRefused("view has shape [3,4], the layout needs [4,3]");
  need_ = {{3, 4}, DType::kI32};
  ExpectRefused("view has dtype f32, the transfer i32");
  need_.dtype = DType::kF32;
  view_.device = DeviceKind::kCuda;
  ExpectRefused("not in host memory");
  view_.device = DeviceKind::kCpu;
  view_.strides = {4};
  ExpectRefused("1 strides for 2 dimensions");
  view_.strides = {4, -1};
  ExpectRefused("stride -1 in dimension 1: negative strides are not taken");
  view_.strides = {int64_t{1} << 61, 1};
  ExpectRefused("in dimension 0");
  view_.strides.clear();
  view_.data = nullptr;
  ExpectRefused("no data");
}

TEST_F(BindViewTest, StridesWhoseSumOverflowsAreRefused) {
  need_.shape = view_.shape = {2, 2, 2};
  view_.strides.assign(3, int64_t{1} << 59);  // each reaches 2^61 bytes and more, together 2^63
  ExpectRefused("stride");
  // The sum fits, but not with the address where the view begins.
  need_.shape = view_.shape = {(1 << 18) - 1};
  view_.strides = {int64_t{1} << 43};
  ExpectRefused("reaches beyond all memory");
}

TEST_F(BindViewTest, WithoutElementsAnyViewWillDo) {
  need_.shape = {0, 4};
  EXPECT_TRUE(Bind().ok());
  EXPECT_EQ(bound_, BoundView());
  view_ = TensorView();
  EXPECT_TRUE(Bind(true).ok());
}

TEST_F(BindViewTest, DestinationsMayNotNameAByteTwice) {
  view_.strides = {0, 1};
  EXPECT_TRUE(Bind(false).ok()) << "a source may repeat itself";
  ExpectRefused("overlaps itself", true);
  view_.strides = {3, 1};
  ExpectRefused("overlaps itself", true);
  view_.strides = {1, 3};
  EXPECT_TRUE(Bind(true).ok());
}

TEST_F(BindViewTest, DestinationsMayInterleave) {
  need_.shape = view_.shape = {3, 2};
  view_.strides = {2, 3};
  EXPECT_TRUE(Bind(true).ok()) << "at 0 3 2 5 4 7";
  view_.strides = {2, 4};
  ExpectRefused("[3,2] with strides [2,4] overlaps itself", true);
}

TEST_F(BindViewTest, StridesOfOnePositionDoNotMatter) {
  need_.shape = view_.shape = {1, 4};
  for (const int64_t stride : {int64_t{0}, int64_t{-7}, int64_t{1} << 62}) {
    view_.strides = {stride, 1};
    ASSERT_TRUE(Bind(true).ok()) << stride;
    EXPECT_EQ(bound_.stride_bytes[1], 4);
  }
}

TEST_F(BindViewTest, WhatIsWritableNamesNoByteTwice) {
  oracle::Dice dice(3);
  int accepted = 0;
  for (int i = 0; i < 5000; ++i) {
    const BoundView random = RandomView(&dice);
    view_.data = random.base;
    view_.shape.clear();
    view_.strides.clear();
    view_.dtype = need_.dtype = random.element_bytes == 1   ? DType::kU8
                                : random.element_bytes == 2 ? DType::kF16
                                : random.element_bytes == 4 ? DType::kF32
                                                            : DType::kI64;
    for (size_t d = 0; d < static_cast<size_t>(random.dims); ++d) {
      view_.shape.push_back(random.shape[d]);
      view_.strides.push_back(random.stride_bytes[d] / random.element_bytes);
    }
    need_.shape = view_.shape;
    if (!Bind(true).ok()) continue;
    ++accepted;
    const Bytes bytes = BytesOf(bound_);
    ASSERT_EQ(bytes.set.size(), bytes.count) << i;
  }
  EXPECT_GT(accepted, 1000);
}

// A view that may have changed is bound as before exactly where binding it again comes to the same.
TEST(IsBoundToTest, AgreesWithBindingAgain) {
  oracle::Dice dice(7);
  int same = 0, others = 0;
  for (int round = 0; round < 20000; ++round) {
    const std::vector<int64_t> shape = oracle::RandomShape(&dice, 4, 64);
    TensorView view = DenseView(Arena().data(), shape, DType::kF32);
    const ViewNeed need = {shape, DType::kF32};
    if (dice.Chance(50)) {
      view.strides.assign(shape.size(), 0);
      for (int64_t& stride : view.strides) stride = dice.Between(0, 9);
    }
    BoundView bound;
    ASSERT_TRUE(BindView(view, need, MemoryRules(), false, &bound).ok());
    ASSERT_TRUE(IsBoundTo(view, need, bound));
    const auto d = static_cast<size_t>(dice.Between(0, static_cast<int64_t>(shape.size()) - 1));
    switch (dice.Between(0, 8)) {
      case 0:
        view.byte_offset += dice.Between(-1, 1);
        break;
      case 1:
        view.data = Arena().data() + dice.Between(0, 1);
        break;
      case 2:
        view.shape[d] += dice.Between(0, 1);
        break;
      case 3:
        view.dtype = dice.Chance(50) ? DType::kI32 : DType::kF32;
        break;
      case 4:
        view.device = dice.Chance(50) ? DeviceKind::kCuda : DeviceKind::kCpu;
        break;
      case 5:
        view.strides.assign(shape.size(), dice.Between(0, 2));
        break;
      case 6:
        if (!view.strides.empty()) view.strides[d] = dice.Between(-1, INT64_MAX);
        break;
      case 7:
        view.strides.resize(static_cast<size_t>(dice.Between(0, 5)), 1);
        break;
      default:
        view.shape.push_back(1);
        break;
    }
    BoundView again;
    const bool is_same = BindView(view, need, MemoryRules(), false, &again).ok() && again == bound;
    const bool said = IsBoundTo(view, need, bound);
    ASSERT_EQ(said, is_same) << "round " << round;
    ++(said ? same : others);
  }
  EXPECT_GT(same, 1000);
  EXPECT_GT(others, 1000);
}

TEST(MemoryUsesTest, FindsWhatLookingAtAllPairsFinds) {
  oracle::Dice dice(11);
  int found = 0;
  for (int round = 0; round < 200; ++round) {
    MemoryUses uses;
    std::vector<BoundView> views;
    std::vector<bool> free;
    for (size_t t = 0; t < 40; ++t) {
      BoundView view = RandomView(&dice);
      view.base += dice.Between(0, 20) * 500;
      bool overlaps = false;
      for (size_t other = 0; other < t; ++other) {
        overlaps = overlaps || (!free[other] && Overlap(views[other], view));
      }
      const auto use = uses.FindOverlap(
          view, [&](const ViewUse& at) { return free[at.tensor] ? nullptr : &views[at.tensor]; });
      ASSERT_EQ(use.has_value(), overlaps) << round << " " << t;
      if (use) {
        EXPECT_FALSE(free[use->tensor]);
        EXPECT_TRUE(Overlap(views[use->tensor], view));
        ++found;
      }
      views.push_back(view);
      free.push_back(false);
      uses.Add({t, true}, view);
      if (t % 3 == 2) free[static_cast<size_t>(dice.Between(0, static_cast<int64_t>(t)))] = true;
    }
  }
  EXPECT_GT(found, 100);
}

}  // namespace
}  // namespace sluice
