// What a rank's views have to be, where they go, and what the ranks' halves come to together.
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "main/fails.h"
#include "session/connect/bound_tensors.h"
#include "session/connect/join_halves.h"
#include "session/connect/tensor_needs.h"
#include "session/specs.h"
#include "session/with_peers.h"

namespace sluice::session_test {
namespace {

using absl::StatusCode;

class TensorNeedsTest : public testing::Test {
 protected:
  absl::Status Fit(const TensorView& view, bool writable = true) {
    return needs_.Fit(view, MemoryRules(), writable, &bound_);
  }
  void ExpectRefused(const std::string& text, const TensorView& view) {
    EXPECT_THAT(Fit(view), Fails(StatusCode::kInvalidArgument, text));
  }
  TensorView View(std::vector<int64_t> shape, size_t at = 0) {
    return DenseView(&memory_[at], std::move(shape), DType::kF32);
  }

  std::array<float, 64> memory_{};
  TensorNeeds needs_;
  std::vector<BoundView> bound_;
};

TEST_F(TensorNeedsTest, OfALocalTensor) {
  needs_ = TensorNeeds::Of(MakeLayout({2}, {3, 1}, "S(0)"), {4, 8}, DType::kF32, 1).value();
  EXPECT_EQ(needs_.views(), 1u);
  ASSERT_TRUE(Fit(View({2, 8})).ok());
  EXPECT_EQ(bound_[0].base, reinterpret_cast<std::byte*>(memory_.data()));
  TensorView view = View({2, 8});
  view.shape = {2, 7};
  ExpectRefused("view has shape [2,7], the layout needs [2,8]", view);
  view = View({2, 8});
  view.dtype = DType::kF64;
  ExpectRefused("view has dtype f64", view);
  view.dtype = static_cast<DType>(77);
  ExpectRefused("view has dtype 77", view);
  view = View({2, 8});
  view.strides = {1, 1};
  ExpectRefused("overlaps itself", view);
  EXPECT_TRUE(Fit(view, /*writable=*/false).ok());
  view = View({2, 8});
  view.device = DeviceKind::kCuda;
  ExpectRefused("not in host memory", view);
  EXPECT_FALSE(needs_.IsLacking(view));
  view = TensorView();
  EXPECT_TRUE(needs_.IsLacking(view));
  view = View({2, 8});
  view.data = nullptr;
  ExpectRefused("view has no data", view);
}

TEST_F(TensorNeedsTest, OfEachBox) {
  const BoxList boxes = *BoxList::Create({{1, {{{0, 0}, {4, 2}}, {{0, 2}, {4, 6}}}}});
  needs_ = TensorNeeds::Of({.boxes = boxes}, {4, 8}, DType::kF32, 1).value();
  EXPECT_EQ(needs_.views(), 2u);
  TensorView view;
  EXPECT_TRUE(needs_.IsLacking(view));
  view.boxes = {View({4, 2}), View({4, 6}, 8)};
  EXPECT_FALSE(needs_.IsLacking(view));
  ASSERT_TRUE(Fit(view).ok());
  EXPECT_EQ(bound_[1].base, reinterpret_cast<std::byte*>(&memory_[8]));
  view.boxes[1].strides = {1, 1};
  ExpectRefused("box 1: destination view of shape [4,6]", view);
  view.boxes.pop_back();
  ExpectRefused("views of 1 boxes, but this rank has 2", view);
  EXPECT_EQ(TensorNeeds::Of({.boxes = boxes}, {4, 8}, DType::kF32, 0)->views(), 0u);
}

// Rank 0 has "x", which becomes its own "a" and rank 1's "b", and gives "y", which nobody asks for.
class BoundTensorsTest : public testing::Test {
 protected:
  BoundTensorsTest() {
    const Layout here = MakeLayout({1}, {0}, "R");
    match_.spec.tensors = {Moved("a", {4}, DType::kF32, here, here),
                           Moved("b", {4}, DType::kF32, here, MakeLayout({1}, {1}, "R"))};
    match_.source_names = {"x", "x"};
    own_.sources = {Part("y", {4}, DType::kF32, here, View(0)),
                    Part("x", {4}, DType::kF32, here, View(4))};
    own_.targets = {Part("a", {4}, DType::kF32, here, View(8))};
  }
  TensorView View(size_t at) { return DenseView(&memory_[at], {4}, DType::kF32); }
  absl::Status Bind() { return bound_.Bind(match_, own_, 0, MemoryRules()); }
  absl::Status Rebind(const std::vector<Connection::NamedView>& sources,
                      const std::vector<Connection::NamedView>& targets) {
    return bound_.Rebind(sources, targets, MemoryRules());
  }

  std::array<float, 32> memory_{};
  Match match_;
  ConnectSpec own_;
  BoundTensors bound_;
};

TEST_F(BoundTensorsTest, AViewGoesToAllTensorsOfItsName) {
  ASSERT_TRUE(Bind().ok());
  EXPECT_EQ(bound_.src()[0].data, &memory_[4]);
  EXPECT_EQ(bound_.src()[1].data, &memory_[4]);
  EXPECT_EQ(bound_.dst()[0].data, &memory_[8]);
  EXPECT_EQ(bound_.dst()[1].data, nullptr);
  const int64_t binding = bound_.binding();
  EXPECT_NE(binding, 0);
  ASSERT_TRUE(Rebind({{"x", View(12)}, {"y", View(4)}}, {{"a", View(16)}}).ok());
  EXPECT_EQ(bound_.src()[0].data, &memory_[12]);
  EXPECT_EQ(bound_.src()[1].data, &memory_[12]);
  EXPECT_EQ(bound_.dst()[0].data, &memory_[16]);
  EXPECT_NE(bound_.binding(), binding);
}

TEST_F(BoundTensorsTest, WhatDoesNotFitChangesNothing) {
  ASSERT_TRUE(Bind().ok());
  const int64_t binding = bound_.binding();
  EXPECT_THAT(Rebind({{"x", View(12)}, {"z", View(12)}}, {}),
              Fails(StatusCode::kNotFound, "this rank gave no source 'z' to Connect"));
  EXPECT_THAT(Rebind({}, {{"b", View(12)}}),
              Fails(StatusCode::kNotFound, "this rank gave no target 'b' to Connect"));
  EXPECT_THAT(Rebind({{"x", TensorView()}}, {}),
              Fails(StatusCode::kInvalidArgument, "source of 'a': view has "));
  EXPECT_THAT(Rebind({{"x", View(7)}}, {}), Fails(StatusCode::kInvalidArgument, "share memory"));
  EXPECT_EQ(bound_.src()[0].data, &memory_[4]);
  EXPECT_EQ(bound_.binding(), binding);
}

TEST_F(BoundTensorsTest, TargetsMayLackTheirMemoryIfTheySayThatItComesLate) {
  own_.targets[0].view = TensorView();
  EXPECT_THAT(Bind(), Fails(StatusCode::kInvalidArgument, "target 'a': view has "));
  own_.late_targets = true;
  bound_ = BoundTensors();
  EXPECT_TRUE(Bind().ok());
}

// Rank 0 gives "w" in two boxes, rank 1 wants it whole; then `spoil` changes what they give.
template <typename Spoil>
void ExpectJoined(const Spoil& spoil, StatusCode code, const std::string& text) {
  WithPeers(2, [&](RankPeers* own) {
    std::array<float, 8> memory{};
    ConnectSpec spec;
    if (own->rank() == 0) {
      Layout boxes;
      boxes.boxes = *BoxList::Create({{0, {{{0}, {3}}, {{3}, {5}}}}});
      TensorView views;
      views.boxes = {DenseView(&memory[0], {3}, DType::kF32),
                     DenseView(&memory[3], {5}, DType::kF32)};
      spec.sources = {Part("w", {8}, DType::kF32, boxes, views)};
    } else {
      spec.targets = {Part("w", {8}, DType::kF32, MakeLayout({1}, {1}, "R"),
                           DenseView(memory.data(), {8}, DType::kF32))};
    }
    spoil(own->rank(), &spec);
    Match match;
    BoundTensors bound;
    const absl::Status status = JoinHalves(&own->peers, MemoryRules(), spec, &match, &bound);
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr(text));
    EXPECT_TRUE(own->peers.poison().ok());
    if (!status.ok()) return;
    ASSERT_EQ(match.spec.tensors.size(), 1u);
    EXPECT_EQ(match.spec.tensors[0].src.boxes.Of(0).size(), 2u);
    EXPECT_THAT(match.spec.tensors[0].dst.mesh.ranks(), testing::ElementsAre(1));
    EXPECT_EQ(bound.src()[0].boxes.size(), own->rank() == 0 ? 2u : 0u);
    EXPECT_EQ(bound.dst()[0].data, own->rank() == 1 ? memory.data() : nullptr);
  });
}

TEST(JoinHalvesTest, AllRanksHaveOneMatchAndEachItsViews) {
  ExpectJoined([](int, ConnectSpec*) {}, StatusCode::kOk, "");
}

TEST(JoinHalvesTest, WhatIsWrongOnOneRankIsTheAnswerOnAll) {
  const auto expect = [](int bad, const auto& change, const std::string& text) {
    ExpectJoined(
        [&](int rank, ConnectSpec* spec) {
          if (rank == bad) change(bad == 0 ? &spec->sources[0] : &spec->targets[0]);
        },
        StatusCode::kInvalidArgument,
        "Connect failed on rank " + std::to_string(bad) + ": " + text);
  };
  expect(
      0,
      [](auto* t) {
        t->layout.boxes = *BoxList::Create({{1, {{{0}, {8}}}}});
      },
      "source 'w': rank 0 gives boxes of rank 1, but each rank gives its own ones alone");
  expect(
      0,
      [](auto* t) {
        t->layout.boxes = *BoxList::Create({{0, {{{0}, {3}}}}, {1, {{{3}, {5}}}}});
      },
      "source 'w': rank 0 gives boxes of ranks 0, 1");
  expect(
      0, [](auto* t) { t->layout.placements = {Placement::Replicate()}; },
      "source 'w': a layout has boxes, or a mesh and placements, not both");
  expect(
      0, [](auto* t) { t->view.boxes.pop_back(); },
      "source 'w': views of 1 boxes, but this rank has 2");
  expect(
      1, [](auto* t) { t->layout = MakeLayout({1}, {0}, "R"); },
      "target 'w': rank 1 gives it, but its mesh is of rank 0");
  expect(
      1, [](auto* t) { t->view.data = nullptr; }, "target 'w': view has no data");
}

}  // namespace
}  // namespace sluice::session_test
