// Connections of ranks that have boxes, or copies of which each knows only its own.
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "plan/connect/half.h"
#include "session/connect_own.h"
#include "session/job.h"
#include "sluice/connect.h"

namespace sluice::session_test {
namespace {

using absl::StatusCode;

// Boxes of one rank.
Layout BoxesOf(int rank, std::vector<Box> boxes) {
  std::vector<RankBoxes> list = {{rank, std::move(boxes)}};
  return {.boxes = BoxList::Create(std::move(list)).value()};
}

TEST(ConnectBoxesTest, WhatNoBoxHoldsIsSaidOnAllRanks) {
  ExpectFails(
      [](int rank, Own* own) {
        if (rank >= 2) return;
        const int64_t row = 2 * rank;
        const int64_t rows = rank == 0 ? 1 : 2;
        float* const memory = own->memory.data();
        own->tensor().layout = BoxesOf(rank, {{{row, 0}, {2, 3}}, {{row, 3}, {rows, 5}}});
        own->tensor().view = {.boxes = {DenseView(memory, {2, 3}, DType::kF32),
                                        DenseView(memory + 6, {rows, 5}, DType::kF32)}};
      },
      StatusCode::kInvalidArgument,
      {"no box holds an element that a target needs: element [1,3] of source 'w' of "
       "ranks 0, 1, for target 'w' of rank"});
}

TEST(ConnectBoxesTest, TooManyBoxesAreRefused) {
  ExpectFails(
      [](int rank, Own* own) {
        if (rank >= 2) return;
        // More than there is room for once both ranks have told theirs.
        const int64_t count = kHalfBoxesMax / 2 + 1;
        std::vector<Box> boxes;
        for (int64_t i = 0; i < count; ++i) boxes.push_back({{2 * i + rank, 0}, {1, 8}});
        own->tensor().shape = {2 * count, 8};
        own->tensor().layout = BoxesOf(rank, std::move(boxes));
        TensorView view;
        view.boxes.assign(static_cast<size_t>(count),
                          DenseView(own->memory.data(), {1, 8}, DType::kF32));
        own->tensor().view = view;
      },
      StatusCode::kResourceExhausted, {"boxes in distinct layouts"});
}

// ---- Copies on meshes that share no rank.

TEST(ConnectCopiesTest, PlainCopiesOfSeveralRanksAreReplicas) {
  RunSessions(4, {}, [](Rank& self, Session* session) {
    std::vector<float> whole(12), part(3, -1);
    std::iota(whole.begin(), whole.end(), 1.0F);
    ConnectSpec own;
    if (self.rank != 1) {
      own.sources.push_back(Part("w", {12}, DType::kF32, MakeLayout({1}, {self.rank}, "R"),
                                 DenseView(whole.data(), {12}, DType::kF32)));
    }
    own.targets.push_back(Part("w", {12}, DType::kF32, MakeLayout({4}, Ranks(0, 4), "S(0)"),
                               DenseView(part.data(), {3}, DType::kF32)));
    const auto connection = Connect(session, own).value();
    const TensorTransfer& tensor = connection->transfer()->spec().tensors[0];
    EXPECT_THAT(tensor.src.mesh.ranks(), testing::ElementsAre(0, 2, 3));
    ASSERT_TRUE(connection->Start({.version = 1}).value().Wait().ok());
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(part[i], static_cast<float>(3 * static_cast<size_t>(self.rank) + i + 1));
    }
  });
}

}  // namespace
}  // namespace sluice::session_test
