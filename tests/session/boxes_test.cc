// Transfers of tensors that lie in boxes.
#include <algorithm>
#include <cstdint>
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
  RunSessions(2, {}, [](Rank&, Session* session) {
    const Layout halves = InBoxes({{0, {{{0}, {4}}}}, {1, {{{4}, {4}}}}});
    const auto refused = [&](const TransferSpec& spec, const char* says) {
      ExpectCode(session->Compile(spec).status(), absl::StatusCode::kInvalidArgument, says);
    };
    refused({{BoxTensor("w", {7}, halves, MakeLayout({1}, {0}, "R"))}}, "does not lie in a tensor");
    refused({{BoxTensor("w", {8}, halves, InBoxes({{2, {{{0}, {1}}}}}))}}, "outside the job's");
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
