// Connections of ranks that have boxes, or copies of which each knows only its own.
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "oracle/sampled.h"
#include "plan/connect/half.h"
#include "session/connect_job.h"
#include "session/connect_own.h"
#include "session/job.h"
#include "sluice/connect.h"

namespace sluice::session_test {
namespace {

using absl::StatusCode;

TEST(ConnectBoxesTest, RandomBoxesAndCopiesAgainstBruteForce) {
  int boxed = 0, copied = 0;
  for (const int size : {1, 2, 3, 4, 6, 8, 16}) {
    const auto seeds = static_cast<uint64_t>(oracle::Thinned(size < 8 ? 32 : 12));
    for (uint64_t seed = 1; seed <= seeds; ++seed) {
      const ConnectJob job = MakeConnectBoxJob(seed * 100 + static_cast<uint64_t>(size), size);
      for (const TensorTransfer& tensor : job.truth.tensors) {
        boxed += tensor.src.boxes.empty() && tensor.dst.boxes.empty() ? 0 : 1;
      }
      for (const auto& [name, copies] : job.copies) copied += copies > 1 ? 1 : 0;
      std::vector<ConnectSpec> specs;
      for (int rank = 0; rank < size; ++rank) {
        oracle::Dice dice(seed * 100 + static_cast<uint64_t>(rank));
        specs.push_back(ConnectMemory(job, rank, &dice).spec());
      }
      const std::vector<std::string> order = PromisedOrder(specs);
      RunSessions(size, job.options, [&](Rank& self, Session* session) {
        oracle::Dice dice(seed * 100 + static_cast<uint64_t>(self.rank));
        ConnectMemory memory(job, self.rank, &dice);
        const auto connection = Connect(session, memory.spec()).value();
        std::vector<std::string> names;
        for (const TensorTransfer& tensor : connection->transfer()->spec().tensors) {
          names.push_back(tensor.name);
        }
        EXPECT_EQ(names, order);
        for (uint64_t round = 1; round <= 2; ++round) {
          memory.Prepare(round);
          const auto run = connection->Start({.version = static_cast<int64_t>(round)}).value();
          ASSERT_EQ(run.Wait(), absl::OkStatus());
          EXPECT_EQ(memory.Check(round), "");
        }
      });
      ASSERT_FALSE(HasFailure()) << "size " << size << " seed " << seed;
    }
  }
  EXPECT_GT(boxed, oracle::Thinned(200));
  EXPECT_GT(copied, oracle::Thinned(20));
}

// Boxes of one rank.
Layout BoxesOf(int rank, std::vector<Box> boxes) {
  std::vector<RankBoxes> list = {{rank, std::move(boxes)}};
  return {.boxes = BoxList::Create(std::move(list)).value()};
}

// Ranks 0 and 1 give "w" in boxes: a row of eight each, in pieces of three and five.
void GiveBoxes(int rank, Own* own) {
  if (rank >= 2) return;
  ConnectTensor& tensor = own->tensor();
  const int64_t row = 2 * rank;
  tensor.layout = BoxesOf(rank, {{{row, 0}, {2, 3}}, {{row, 3}, {2, 5}}});
  TensorView view = {.boxes = {DenseView(own->memory.data(), {2, 3}, DType::kF32),
                               DenseView(own->memory.data() + 6, {2, 5}, DType::kF32)}};
  tensor.view = view;
}

// The same of targets: each of ranks 2 and 3 wants four columns.
void WantBoxes(int rank, Own* own) {
  if (rank < 2) return;
  ConnectTensor& tensor = own->tensor();
  tensor.layout = BoxesOf(rank, {{{0, 4 * (rank - 2)}, {4, 4}}});
  TensorView view;
  view.boxes = {tensor.view};
  tensor.view = view;
}

TEST(ConnectBoxesTest, OtherMemoryFromOneRunToTheNext) {
  RunSessions(kOwnRanks, {}, [](Rank& self, Session* session) {
    Own own(self.rank);
    GiveBoxes(self.rank, &own);
    WantBoxes(self.rank, &own);
    own.memory.fill(static_cast<float>(self.rank + 1));
    const auto connection = Connect(session, own.spec).value();
    TensorView other = own.tensor().view;
    for (TensorView& box : other.boxes) box.byte_offset += 128;
    std::fill(own.memory.begin() + 32, own.memory.end(), 10.0F * static_cast<float>(self.rank + 1));
    TensorView fewer = other;
    fewer.boxes.pop_back();
    if (self.rank < 2) {
      EXPECT_THAT(connection->Rebind({{"w", fewer}}, {}).ToString(),
                  testing::HasSubstr("source of 'w': views of 1 boxes, but this rank has 2"));
      EXPECT_TRUE(connection->Rebind({{"w", other}}, {}).ok());
    } else {
      TensorView none = other;
      none.boxes[0].data = nullptr;
      EXPECT_THAT(connection->Rebind({}, {{"w", none}}).ToString(),
                  testing::HasSubstr("target 'w': box 0: view has no data"));
      EXPECT_TRUE(connection->Rebind({}, {{"w", other}}).ok());
    }
    ASSERT_TRUE(connection->Start({.version = 1}).value().Wait().ok());
    if (self.rank >= 2) {
      for (size_t i = 0; i < 16; ++i) {
        EXPECT_EQ(own.memory[i], static_cast<float>(self.rank + 1)) << "the old memory";
        EXPECT_EQ(own.memory[32 + i], i < 8 ? 10 : 20) << i;
      }
    }
  });
}

TEST(ConnectBoxesTest, MemoryThatComesDuringARun) {
  RunSessions(kOwnRanks, {}, [](Rank& self, Session* session) {
    Own own(self.rank);
    GiveBoxes(self.rank, &own);
    WantBoxes(self.rank, &own);
    own.memory.fill(static_cast<float>(self.rank + 1));
    const TensorView late = own.tensor().view;
    if (self.rank >= 2) {
      own.spec.late_targets = true;
      own.tensor().view = TensorView();
      if (self.rank == 3) own.tensor().view.boxes.resize(1);
    }
    const auto connection = Connect(session, own.spec).value();
    const auto run = connection->Start({.late_destinations = self.rank >= 2, .version = 1}).value();
    if (self.rank >= 2) {
      EXPECT_TRUE(run.Supply(0, late).ok());
    }
    ASSERT_TRUE(run.Wait().ok());
    if (self.rank >= 2) {
      for (size_t i = 0; i < 16; ++i) EXPECT_EQ(own.memory[i], i < 8 ? 1 : 2) << i;
    }
  });
}

TEST(ConnectBoxesTest, WhatIsWrongIsSaidOnAllRanks) {
  const auto boxes = [](const std::function<void(int rank, Own* own)>& change) {
    return [change](int rank, Own* own) {
      GiveBoxes(rank, own);
      WantBoxes(rank, own);
      change(rank, own);
    };
  };
  ExpectFails(boxes([](int rank, Own* own) {
                if (rank != 0) return;
                own->tensor().layout = BoxesOf(0, {{{0, 0}, {2, 3}}, {{0, 3}, {1, 5}}});
                own->tensor().view.boxes[1].shape = {1, 5};
              }),
              StatusCode::kInvalidArgument,
              {"no box holds an element that a target needs: element [1,3] of source 'w' of "
               "ranks 0, 1, for target 'w' of rank 2"});
  ExpectFails(boxes([](int rank, Own* own) {
                if (rank == 1) own->tensor().layout = BoxesOf(0, {{{2, 0}, {2, 8}}});
              }),
              StatusCode::kInvalidArgument,
              {"Connect failed on rank 1: source 'w': rank 1 gives boxes of rank 0"});
  ExpectFails(boxes([](int rank, Own* own) {
                std::vector<RankBoxes> two = {{0, {{{0, 0}, {2, 8}}}}, {1, {{{2, 0}, {2, 8}}}}};
                if (rank < 2) own->tensor().layout.boxes = *BoxList::Create(std::move(two));
              }),
              StatusCode::kInvalidArgument, {"boxes of ranks 0, 1, but each rank gives its own"},
              /*alike=*/true);
  ExpectFails(boxes([](int rank, Own* own) {
                if (rank == 1) own->tensor().layout = BoxesOf(1, {{{2, 0}, {3, 8}}});
              }),
              StatusCode::kInvalidArgument, {"rank 1: source 'w'", "does not lie in a tensor"});
  // The same boxes once more, with placements beside them.
  ExpectFails(boxes([](int rank, Own* own) {
                if (rank != 1) return;
                own->spec.sources.push_back(own->tensor());
                own->spec.sources.back().name = "v";
                own->spec.sources.back().layout.placements = {Placement::Replicate()};
              }),
              StatusCode::kInvalidArgument,
              {"rank 1: source 'v': a layout has boxes, or a mesh and placements, not both"});
  ExpectFails(boxes([](int rank, Own* own) {
                if (rank == 1) own->tensor().view.boxes.pop_back();
              }),
              StatusCode::kInvalidArgument,
              {"rank 1: source 'w': views of 1 boxes, but this rank has 2"});
  ExpectFails(boxes([](int rank, Own* own) {
                if (rank == 3) own->tensor().view.boxes[0].strides = {1, 1};
              }),
              StatusCode::kInvalidArgument, {"rank 3: target 'w': box 0: ", "overlaps itself"});
  ExpectFails(boxes([](int rank, Own* own) {
                if (rank == 3)
                  own->tensor().dtype = own->tensor().view.boxes[0].dtype = DType::kF16;
              }),
              StatusCode::kFailedPrecondition,
              {"ranks disagree on target 'w': f32 on rank 2, f16 on rank 3"});
  ExpectFails(
      [](int rank, Own* own) {
        if (rank == 1) GiveBoxes(rank, own);
      },
      StatusCode::kFailedPrecondition,
      {"ranks disagree on source 'w': S(0) on mesh [2] of ranks 0, 1 on rank 0, boxes on "
       "rank 1"});
  ExpectFails(boxes([](int rank, Own* own) {
                if (rank != 2) return;
                own->tensor().layout = BoxesOf(2, {{{0, 0}, {4, 2}}, {{0, 2}, {4, 2}}});
                const TensorView part = DenseView(own->memory.data(), {4, 2}, DType::kF32);
                own->tensor().view.boxes = {part, part};
              }),
              StatusCode::kInvalidArgument,
              {"rank 2: destination of tensor 0 'w' and destination of tensor 0 'w' share memory"});
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

TEST(ConnectCopiesTest, MeshesThatDifferAreNamed) {
  ExpectFails(
      [](int rank, Own* own) {
        if (rank >= 2) return;
        own->tensor().layout = MakeLayout({1}, {rank}, rank == 0 ? "R" : "S(0)");
        own->tensor().view = DenseView(own->memory.data(), {4, 8}, DType::kF32);
      },
      StatusCode::kFailedPrecondition,
      {"ranks disagree on source 'w': R on mesh [1] of rank 0 on rank 0, S(0) on mesh [1] of rank "
       "1 on rank 1"});
}

}  // namespace
}  // namespace sluice::session_test
