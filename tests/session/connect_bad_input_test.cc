// Halves that do not fit together: the same error on every rank, nothing moved, and the session
// goes on.
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "session/connect_own.h"
#include "session/job.h"

namespace sluice::session_test {
namespace {

using absl::StatusCode;

TEST(ConnectBadInputTest, GoodInputIsGood) {
  RunRanks(kOwnRanks, [](Rank& self) {
    const auto session = OpenSession(self, {});
    ASSERT_NE(session, nullptr);
    RunGood(session.get(), self.rank);
    EXPECT_TRUE(session->Close().ok());
  });
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

TEST(ConnectBadInputTest, SourcesWithoutATarget) {
  ExpectFails(
      [](int rank, Own* own) {
        if (rank >= 2) own->spec.targets.clear();
      },
      StatusCode::kInvalidArgument,
      {"no target asks for source 'w' of ranks 0, 1", "ignore_unused_sources"});
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
        own->tensor().shape = {8, 4};
        own->tensor().view = DenseView(own->memory.data(), {8, 2}, DType::kF32);
      },
      StatusCode::kInvalidArgument,
      {"shapes differ: source 'w' of ranks 0, 1 has shape [4,8], target 'w' of ranks 2, 3 [8,4]"});
  ExpectFails(
      [](int rank, Own* own) {
        if (rank < 2) return;
        own->tensor().dtype = own->tensor().view.dtype = DType::kI32;
      },
      StatusCode::kInvalidArgument,
      {"no cast exists", "'w' of ranks 0, 1 is f32, target 'w' of ranks 2, 3 i32"});
}

TEST(ConnectBadInputTest, RanksOfOneSideThatDisagree) {
  ExpectFails(On(1,
                 [](Own* own) {
                   own->tensor().shape = {4, 6};
                   own->tensor().view = DenseView(own->memory.data(), {2, 6}, DType::kF32);
                 }),
              StatusCode::kFailedPrecondition,
              {"ranks disagree on source 'w': shape [4,8] on rank 0, [4,6] on rank 1"});
  ExpectFails(
      On(3, [](Own* own) { own->tensor().dtype = own->tensor().view.dtype = DType::kBF16; }),
      StatusCode::kFailedPrecondition,
      {"ranks disagree on target 'w': f32 on rank 2, bf16 on rank 3"});
  ExpectFails(On(3,
                 [](Own* own) {
                   own->tensor().layout = MakeLayout({2}, {3, 2}, "S(1)");
                 }),
              StatusCode::kFailedPrecondition,
              {"ranks disagree on target 'w': S(1) on mesh [2] of ranks 2, 3 on rank 2, S(1) on "
               "mesh [2] of ranks 2, 3 in another order on rank 3"});
  ExpectFails(On(3, [](Own* own) { own->tensor().window = 4; }), StatusCode::kFailedPrecondition,
              {"ranks disagree on target 'w': no window on rank 2, window 4 on rank 3"});
  ExpectFails([](int rank, Own* own) { own->spec.priority_class = rank == 3 ? 1 : 2; },
              StatusCode::kFailedPrecondition,
              {"ranks disagree on priority_class: 2 on ranks 0, 1, 1 on rank 3"});
}

TEST(ConnectBadInputTest, MeshesAndTheRanksThatGive) {
  ExpectFails(On(1, [](Own* own) { own->spec.sources.clear(); }), StatusCode::kInvalidArgument,
              {"source 'w' of rank 0 lies on rank 1, too, which does not give it"});
  ExpectFails(On(2, [](Own* own) { own->spec.targets.clear(); }), StatusCode::kInvalidArgument,
              {"target 'w' of rank 3 lies on rank 2, too, which does not give it"});
  ExpectFails(On(2, [](Own* own) { own->spec.sources.push_back(Own(0).tensor()); }),
              StatusCode::kInvalidArgument,
              {"Connect failed on rank 2: source 'w': rank 2 gives it, but its mesh is of ranks "
               "0, 1"});
  ExpectFails(On(2,
                 [](Own* own) {
                   own->tensor().layout = MakeLayout({2}, {2, 4}, "S(1)");
                 }),
              StatusCode::kInvalidArgument,
              {"Connect failed on rank 2: target 'w': rank 4 is outside the job's ranks 0..3"});
}

TEST(ConnectBadInputTest, ManyFaultsAreCounted) {
  ExpectFails(
      [](int rank, Own* own) {
        if (rank < 2) return;
        for (int i = 0; i < 100; ++i) {
          ConnectTensor more = own->tensor();
          more.name = "more" + std::to_string(i);
          more.view = DenseView(nullptr, more.view.shape, more.dtype);
          own->spec.targets.push_back(more);
        }
        own->spec.late_targets = true;
      },
      StatusCode::kNotFound,
      {"no rank has a source for target 'more0' of ranks 2, 3, 'more1' of ranks 2, 3",
       "and 96 more"});
}

TEST(ConnectBadInputTest, WithAProgressThread) {
  ExpectFails(On(1, [](Own* own) { own->spec.sources.clear(); }), StatusCode::kInvalidArgument,
              {"lies on rank 1"}, true, true);
}

}  // namespace
}  // namespace sluice::session_test
