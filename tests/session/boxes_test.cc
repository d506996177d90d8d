// Transfers of tensors that lie in boxes.
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "oracle/random_layout.h"
#include "oracle/sampled.h"
#include "session/job.h"
#include "sluice/session.h"

namespace sluice::session_test {
namespace {

Layout InBoxes(std::vector<RankBoxes> ranks) {
  return {.boxes = BoxList::Create(std::move(ranks)).value()};
}

TensorTransfer BoxTensor(std::string name, std::vector<int64_t> shape, Layout src, Layout dst) {
  return {.name = std::move(name),
          .shape = std::move(shape),
          .src = std::move(src),
          .dst = std::move(dst)};
}

void ExpectCode(const absl::Status& status, absl::StatusCode code, const std::string& text) {
  EXPECT_EQ(status.code(), code) << status;
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr(text));
}

TEST(BoxesTest, RandomBoxesAgainstBruteForce) {
  for (const int size : {1, 2, 3, 5, 8, 16}) {
    for (const uint64_t seed : oracle::Seeds(size < 8 ? 60 : 16)) {
      SCOPED_TRACE(testing::Message() << "size " << size << " seed " << seed);
      const auto of = 1000 * static_cast<uint64_t>(size) + seed;
      const RandomJob job = MakeRandomBoxJob(of, size);
      RunRanks(size, [&](Rank& self) { RunJob(self, job, of); });
      if (testing::Test::HasFailure()) return;
    }
  }
}

TEST(BoxesTest, OneSlotIsEnough) {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    RandomJob job = MakeRandomBoxJob(seed, 4);
    TransferSpec& spec = job.specs[0];
    RunRanks(4, [&](Rank& self) { RunThroughOneSlot(self, spec); });
  }
}

// What each rank of `layout` holds, as boxes: one for each way to choose an interval of each
// dimension.
Layout AsBoxes(const Layout& layout, const std::vector<int64_t>& shape) {
  std::vector<RankBoxes> ranks;
  for (const int rank : layout.mesh.ranks()) {
    const auto ranges = OwnedRanges(layout, shape, rank).value();
    std::vector<Box> boxes = {{}};
    for (const std::vector<IndexRange>& of_dim : ranges) {
      std::vector<Box> longer;
      for (const Box& box : boxes) {
        for (const IndexRange& range : of_dim) {
          longer.push_back(box);
          longer.back().offset.push_back(range.begin);
          longer.back().shape.push_back(range.end - range.begin);
        }
      }
      boxes = std::move(longer);
    }
    if (!boxes.empty()) ranks.push_back({rank, std::move(boxes)});
  }
  return InBoxes(std::move(ranks));
}

std::vector<float> Numbers(int64_t count, float first) {
  std::vector<float> numbers(static_cast<size_t>(count));
  std::iota(numbers.begin(), numbers.end(), first);
  return numbers;
}

// Views of a rank's boxes that lie one after the other.
TensorView ViewsIn(const BoxList& list, int rank, std::vector<float>* memory) {
  TensorView view;
  int64_t at = 0;
  for (const Box& box : list.Of(rank)) {
    int64_t elements = 1;
    for (const int64_t size : box.shape) elements *= size;
    view.boxes.push_back(DenseView(memory->data() + at, box.shape, DType::kF32));
    at += elements;
  }
  memory->resize(static_cast<size_t>(at));
  return view;
}

// FSDP over tensor parallelism, of sizes that do not divide, and strided pieces.
TEST(BoxesTest, BoxesOfAPlacementBringThePlacementsBytes) {
  for (const char* placements : {"S(0),S(1)", "S(1),R", "SS(0,3),S(0)", "R,R"}) {
    RunRanks(4, [&](Rank& self) {
      const std::vector<int64_t> shape = {13, 7};
      const Layout target = MakeLayout({2, 2}, Ranks(0, 4), placements);
      const Layout source = MakeLayout({4}, Ranks(0, 4), "S(0)");
      const Layout boxes = AsBoxes(target, shape);
      const TransferSpec spec = {
          .tensors = {BoxTensor("placed", shape, source, target),
                      BoxTensor("boxed", shape, AsBoxes(source, shape), boxes)}};
      const auto session = OpenSession(self, {});
      const auto transfer = session->Compile(spec).value();
      const auto src_shape = LocalShape(source, shape, self.rank).value();
      const auto dst_shape = LocalShape(target, shape, self.rank).value();
      std::vector<float> src =
          Numbers(src_shape[0] * src_shape[1], 100.0F * static_cast<float>(self.rank + 1));
      std::vector<float> placed(static_cast<size_t>(dst_shape[0] * dst_shape[1]));
      std::vector<float> boxed(91);
      const TensorView into = ViewsIn(boxes.boxes, self.rank, &boxed);
      const TensorView whole = {.boxes = {DenseView(src.data(), src_shape, DType::kF32)}};
      const auto run =
          session->Start(transfer, {DenseView(src.data(), src_shape, DType::kF32), whole},
                         {DenseView(placed.data(), dst_shape, DType::kF32), into});
      ASSERT_TRUE(run.ok()) << run.status();
      ASSERT_TRUE(run->Wait().ok());
      ASSERT_EQ(boxed.size(), placed.size());
      // Boxes lie one after the other, and elements of the placement row by row.
      std::sort(boxed.begin(), boxed.end());
      std::sort(placed.begin(), placed.end());
      EXPECT_EQ(boxed, placed);
      EXPECT_TRUE(session->Close().ok());
    });
  }
}

// A padded vocabulary: 10 rows padded to 12, cut in 3, of which the last rank has two.
TEST(BoxesTest, MemoryOfATensorComesForAllItsBoxesAtOnce) {
  RunRanks(3, [](Rank& self) {
    TransferSpec spec = {
        .tensors = {
            BoxTensor("first", {10, 6}, MakeLayout({2}, {0, 1}, "S(1)"),
                      InBoxes({{0, {{{0, 0}, {4, 6}}}},
                               {1, {{{4, 0}, {2, 6}}, {{6, 0}, {2, 3}}, {{6, 3}, {2, 3}}}},
                               {2, {{{8, 0}, {2, 6}}}}})),
            BoxTensor("second", {4}, MakeLayout({1}, {0}, "R"), InBoxes({{1, {{{1}, {2}}}}}))}};
    spec.tensors[1].window = 1;
    const auto session = OpenSession(self, {});
    Bound bound = CompileBound(session.get(), spec);
    for (uint64_t round = 1; round <= 3; ++round) {
      bound.memory.Prepare(round);
      const StartOptions options = {.late_destinations = true};
      const std::vector<TensorView> none(2);
      const auto run = session->Start(bound.transfer, bound.memory.src(), none, options).value();
      std::vector<int> needed;
      std::vector<int> done;
      while (!run.IsDone()) {
        ASSERT_TRUE(session->Poll().ok());
        Event event;
        while (session->PollEvent(&event)) {
          ASSERT_NE(event.kind, Event::Kind::kFailed) << event.status;
          if (event.kind == Event::Kind::kTensorDone) done.push_back(event.tensor);
          if (event.kind != Event::Kind::kNeedsMemory) continue;
          needed.push_back(event.tensor);
          TensorView partly = bound.memory.dst()[static_cast<size_t>(event.tensor)];
          partly.boxes.pop_back();
          ExpectCode(run.Supply(event.tensor, partly), absl::StatusCode::kInvalidArgument,
                     "boxes, but this rank has");
          const TensorView& whole = bound.memory.dst()[static_cast<size_t>(event.tensor)];
          EXPECT_TRUE(run.Supply(event.tensor, whole).ok());
          ExpectCode(run.Supply(event.tensor, whole), absl::StatusCode::kFailedPrecondition,
                     "has had its memory");
        }
      }
      Event event;
      while (session->PollEvent(&event)) done.push_back(event.tensor);
      EXPECT_EQ(needed, self.rank == 1 ? std::vector<int>({0, 1}) : std::vector<int>({0}));
      std::sort(done.begin(), done.end());  // a window without late tensors does not wait
      EXPECT_EQ(done, std::vector<int>({0, 1}));
      EXPECT_EQ(bound.memory.Check(round), "");
    }
    EXPECT_TRUE(session->Close().ok());
  });
}

TEST(BoxesTest, WhatDoesNotFitIsNamed) {
  RunSessions(2, {}, [](Rank& self, Session* session) {
    const auto refused = [&](const TransferSpec& spec, const char* says) {
      ExpectCode(session->Compile(spec).status(), absl::StatusCode::kInvalidArgument, says);
    };
    const Layout halves = InBoxes({{0, {{{0}, {4}}}}, {1, {{{4}, {4}}}}});
    refused({{BoxTensor("w", {9}, halves, MakeLayout({1}, {0}, "R"))}},
            "no rank holds the elements [1] at [8]");
    refused({{BoxTensor("w", {7}, halves, MakeLayout({1}, {0}, "R"))}}, "does not lie in a tensor");
    refused({{BoxTensor("w", {8}, halves, InBoxes({{2, {{{0}, {1}}}}}))}}, "outside the job's");
    // Lists that differ are told by their ranks.
    const Layout other = InBoxes({{0, {{{0}, {5}}}}, {1, {{{4}, {4}}}}});
    const TransferSpec differs = {
        {BoxTensor("w", {8}, self.rank == 0 ? halves : other, MakeLayout({1}, {0}, "R"))}};
    ExpectCode(session->Compile(differs).status(), absl::StatusCode::kFailedPrecondition, "differ");
    const TransferSpec spec = {{BoxTensor("w", {8}, halves, halves)}};
    const auto transfer = session->Compile(spec).value();
    std::vector<float> memory(8);
    TensorView src;
    TensorView dst;
    src.boxes = {DenseView(memory.data(), {4}, DType::kF32)};
    dst.boxes = {DenseView(memory.data() + 4, {3}, DType::kF32)};
    ExpectCode(session->Start(transfer, {src}, {dst})->Wait(), absl::StatusCode::kInvalidArgument,
               "destination of tensor 0 'w': box 0: ");
    dst.boxes = {DenseView(memory.data() + 2, {4}, DType::kF32)};
    ExpectCode(session->Start(transfer, {src}, {dst})->Wait(), absl::StatusCode::kInvalidArgument,
               "share memory");
    ExpectCode(session->Start(transfer, {src}, {TensorView()})->Wait(),
               absl::StatusCode::kInvalidArgument, "views of 0 boxes, but this rank has 1");
    dst.boxes = {DenseView(memory.data() + 4, {4}, DType::kF32)};
    const auto run = session->Start(transfer, {src}, {dst}).value();
    EXPECT_TRUE(run.Wait().ok());
  });
}

}  // namespace
}  // namespace sluice::session_test
