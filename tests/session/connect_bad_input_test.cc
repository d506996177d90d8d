// Halves that are wrong by themselves or do not fit together: the same error on every rank, nothing
// moved, and the session goes on.
#include <string>

#include "gmock/gmock.h"
#include "session/connect_own.h"
#include "session/job.h"

namespace sluice::session_test {
namespace {

using absl::StatusCode;

TEST(ConnectBadInputTest, GoodInputIsGood) {
  RunSessions(kOwnRanks, {}, [](Rank& self, Session* session) { RunGood(session, self.rank); });
}

TEST(ConnectBadInputTest, TargetsWithoutASource) {
  ExpectFails(
      [](int rank, Own* own) {
        if (rank >= 2) own->tensor().name = "v";
      },
      StatusCode::kNotFound,
      {"no rank has a source for target 'v' of ranks 2, 3",
       "no target asks for source 'w' of ranks 0, 1"});
  ExpectFails(
      [](int rank, Own* own) {
        if (rank < 2) own->spec.sources.clear();
      },
      StatusCode::kNotFound, {"no rank has a source for target 'w' of ranks 2, 3"});
}

TEST(ConnectBadInputTest, RenamesThatLeadNowhereOrApart) {
  ExpectFails(
      [](int rank, Own* own) {
        if (rank == 2) own->spec.renames["w"] = "v";
      },
      StatusCode::kNotFound, {"'w' of ranks 2, 3 (renamed from 'v')"});
  ExpectFails(
      [](int rank, Own* own) {
        if (rank >= 2) own->spec.renames["w"] = rank == 2 ? "w" : "v";
      },
      StatusCode::kFailedPrecondition,
      {"ranks disagree on the source of target 'w': 'w' on rank 2, 'v' on rank 3"});
  ExpectFails(On(1, [](Own* own) { own->spec.renames["t"] = ""; }), StatusCode::kInvalidArgument,
              {"Connect failed on rank 1: the rename of 't' to '': it has no name"});
}

TEST(ConnectBadInputTest, SidesThatDiffer) {
  ExpectFails(
      [](int rank, Own* own) {
        if (rank < 2) return;
        own->tensor().dtype = own->tensor().view.dtype = DType::kI32;
      },
      StatusCode::kInvalidArgument,
      {"no cast exists", "'w' of ranks 0, 1 is f32, target 'w' of ranks 2, 3 i32"});
}

TEST(ConnectBadInputTest, RanksOfOneSideThatDisagree) {
  ExpectFails(On(3,
                 [](Own* own) {
                   own->tensor().layout = MakeLayout({2}, {3, 2}, "S(1)");
                 }),
              StatusCode::kFailedPrecondition,
              {"ranks disagree on target 'w': S(1) on mesh [2] of ranks 2, 3 on rank 2, S(1) on "
               "mesh [2] of ranks 2, 3 in another order on rank 3"});
  ExpectFails([](int rank, Own* own) { own->spec.priority_class = rank == 3 ? 1 : 2; },
              StatusCode::kFailedPrecondition,
              {"ranks disagree on priority_class: 2 on ranks 0, 1, 1 on rank 3"});
}

TEST(ConnectBadInputTest, MeshesAndTheRanksThatGive) {
  ExpectFails(On(1, [](Own* own) { own->spec.sources.clear(); }), StatusCode::kInvalidArgument,
              {"source 'w' of rank 0 lies on rank 1, too, which does not give it"});
  ExpectFails(On(2, [](Own* own) { own->spec.targets.clear(); }), StatusCode::kInvalidArgument,
              {"target 'w' of rank 3 lies on rank 2, too, which does not give it"});
}

TEST(ConnectBadInputTest, WithAProgressThread) {
  ExpectFails(On(1, [](Own* own) { own->spec.sources.clear(); }), StatusCode::kInvalidArgument,
              {"lies on rank 1"}, true, true);
}

TEST(ConnectBadTensorsTest, TensorsThatMakeNoSense) {
  const auto expect = [](const std::function<void(Own*)>& change, const std::string& text) {
    ExpectFails(On(2, change), StatusCode::kInvalidArgument, {"Connect failed on rank 2", text});
  };
  expect([](Own* own) { own->spec.targets.push_back(own->tensor()); },
         "target 'w': it is given twice");
  expect([](Own* own) { own->tensor().name = ""; }, "target '': it has no name");
  expect([](Own* own) { own->tensor().name = std::string(2000, 'n'); },
         "its name has 2000 bytes; at most 1024 are possible");
  expect(
      [](Own* own) {
        own->tensor().name = "a\nb";
        own->tensor().shape = {};
      },
      "'a\\nb'");
  expect([](Own* own) { own->tensor().layout = {}; }, "the mesh is empty");
  expect(
      [](Own* own) {
        own->tensor().layout = MakeLayout({2}, {2, 3}, "P(sum)");
      },
      "only a source may be Partial");
  expect([](Own* own) { own->tensor().window = -1; }, "window is -1");
  expect([](Own* own) { own->tensor().window = kMaxWindow + 1; }, "window is 65536");
  expect([](Own* own) { own->spec.priority_class = kPriorityClasses; }, "priority_class is 4");
  expect([](Own* own) { own->tensor().dtype = static_cast<DType>(77); },
         "target 'w': there is no dtype 77");
  expect(
      [](Own* own) { own->tensor().layout.placements[0].kind = static_cast<Placement::Kind>(77); },
      "target 'w': there is no kind 77 of placement");
  expect(
      [](Own* own) {
        own->tensor().shape = {int64_t{1} << 40, int64_t{1} << 40};
      },
      "target 'w'");
  ExpectFails(On(0,
                 [](Own* own) {
                   own->tensor().layout = MakeLayout({2}, {0, 1}, "P(max)");
                   own->tensor().layout.placements[0].op = static_cast<ReduceOp>(77);
                 }),
              StatusCode::kInvalidArgument, {"rank 0", "source 'w': there is no reduction 77"});
  ExpectFails(On(0,
                 [](Own* own) {
                   own->tensor().dtype = own->tensor().view.dtype = DType::kBool;
                   own->tensor().layout = MakeLayout({2}, {0, 1}, "P(max)");
                 }),
              StatusCode::kInvalidArgument, {"rank 0", "there is no reduction of bool"});
}

TEST(ConnectBadTensorsTest, FieldsSayWhatItIsAbout) {
  // A name may read like the rest of an error.
  const std::string name = "x' of rank 3, bucket 7: ranks disagree on target 'y";
  const auto renamed = [&name](Own* own) {
    own->tensor().name = name;
    own->tensor().window = -1;
  };
  ExpectFields(On(1, renamed), {.ranks = {1}, .tensor = name});
  // Ranks that give the same in other ways.
  ExpectFields(
      On(1, [](Own* own) { own->tensor().dtype = own->tensor().view.dtype = DType::kI32; }),
      {.ranks = {0, 1}, .tensor = "w", .is_disagreement = true});
}

TEST(ConnectBadTensorsTest, MemoryThatIsUsedTwice) {
  ExpectFails(
      [](int rank, Own* own) {
        if (rank < 2) return;
        ConnectTensor again = own->tensor();
        again.name = "again";
        again.view.byte_offset = rank == 2 ? 256 : 4;
        own->spec.renames["again"] = "w";
        own->memory.fill(0);
        own->spec.targets.push_back(again);
        if (rank == 2)
          own->spec.targets.back().view = DenseView(&own->memory[16], {4, 4}, DType::kF32);
      },
      StatusCode::kInvalidArgument,
      {"Connect failed on rank 3: destination of tensor 0 'w' and destination of tensor 1 'again' "
       "share memory"});
}

TEST(ConnectBadTensorsTest, AllRanksAreBad) {
  ExpectFails([](int, Own* own) { own->tensor().name = ""; }, StatusCode::kInvalidArgument,
              {"it has no name"}, /*alike=*/false);
}

}  // namespace
}  // namespace sluice::session_test
