// The memory of a connection: bound, bound anew, given later, or not asked for. And calls of
// Connect that meet others, or nobody.
#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "main/fails.h"
#include "session/connect_own.h"
#include "session/job.h"
#include "sluice/connect.h"
#include "sluice/error.h"
#include "sluice/stream.h"

namespace sluice::session_test {
namespace {

using absl::StatusCode;

// One element from rank 0 to rank 1.
ConnectTensor OneElement(int rank, void* data) {
  return Part("x", {1}, DType::kI64, MakeLayout({1}, {rank}, "R"),
              DenseView(data, {1}, DType::kI64));
}

// A run that was bound once is used again, for what else the transfer is started with.
TEST(ConnectMemoryTest, OtherViewsInBetweenAreNotTakenForTheBoundOnes) {
  for (const bool progress_thread : {false, true}) {
    RunSessions(2, {.progress_thread = progress_thread}, [&](Rank& self, Session* session) {
      std::array<int64_t, 2> cells = {7, 8};
      if (self.rank == 1) cells = {0, 0};
      ConnectSpec own;
      (self.rank == 0 ? own.sources : own.targets).push_back(OneElement(self.rank, &cells[0]));
      const auto connection = Connect(session, own).value();
      Transfer* const transfer = connection->transfer();
      const TensorView other = DenseView(&cells[1], {1}, DType::kI64);
      const TensorView none;
      const auto start_other = [&](const StartOptions& how) {
        const bool is_late = how.late_destinations;
        return session->Start(transfer, {self.rank == 0 ? other : none},
                              {self.rank == 0 || is_late ? none : other}, how);
      };
      const auto expect = [&](int64_t first, int64_t second) {
        if (self.rank == 1) {
          EXPECT_THAT(cells, testing::ElementsAre(first, second));
          cells = {0, 0};
        }
      };
      const auto wait = [](const absl::StatusOr<sluice::Run>& run) {
        ASSERT_TRUE(run.ok()) << run.status();
        EXPECT_TRUE(run->Wait().ok());
      };
      const StartOptions late = {.late_destinations = true};
      for (int round = 0; round < 3; ++round) {
        wait(connection->Start());
        expect(7, 0);
        wait(start_other({}));
        expect(0, 8);
        wait(connection->Start());
        expect(7, 0);
        const auto supplied = start_other(late).value();
        if (self.rank == 1) {
          EXPECT_TRUE(supplied.Supply(0, other).ok());
        }
        EXPECT_TRUE(supplied.Wait().ok());
        expect(0, 8);
        // Both are in flight, each with a run of its own, and none is the one before.
        const auto bound = connection->Start();
        wait(start_other({}));
        wait(bound);
        expect(7, 8);
      }
    });
  }
}

// The run in flight goes on with the memory that it was started with.
TEST(ConnectMemoryTest, RebindDoesNotReachRunsInFlight) {
  RunSessions(2, {}, [](Rank& self, Session* session) {
    std::array<int64_t, 2> cells = {7, 8};
    if (self.rank == 1) cells = {0, 0};
    ConnectSpec own;
    (self.rank == 0 ? own.sources : own.targets).push_back(OneElement(self.rank, &cells[0]));
    const auto connection = Connect(session, own).value();
    const auto rebind = [&](size_t i) {
      const Connection::NamedView named = {"x", DenseView(&cells[i], {1}, DType::kI64)};
      return self.rank == 0 ? connection->Rebind({named}, {}) : connection->Rebind({}, {named});
    };
    for (int round = 0; round < 3; ++round) {
      const auto first = connection->Start().value();
      EXPECT_TRUE(rebind(1).ok());
      const auto second = connection->Start().value();
      EXPECT_TRUE(rebind(0).ok());
      EXPECT_TRUE(first.Wait().ok());
      EXPECT_TRUE(second.Wait().ok());
      if (self.rank == 1) {
        EXPECT_THAT(cells, testing::ElementsAre(7, 8));
        cells = {0, 0};
      }
    }
  });
}

TEST(ConnectMemoryTest, TargetsMayGetTheirMemoryLater) {
  RunSessions(2, {}, [](Rank& self, Session* session) {
    int64_t cell = self.rank == 0 ? 7 : 0;
    ConnectSpec own;
    if (self.rank == 0) own.sources.push_back(OneElement(0, &cell));
    if (self.rank == 1) own.targets.push_back(OneElement(1, nullptr));
    own.late_targets = self.rank == 1;
    const auto connection = Connect(session, own).value();
    const StartOptions late = {.late_destinations = true, .version = 1};
    const TensorView view = DenseView(&cell, {1}, DType::kI64);
    const auto supplied = connection->Start(late).value();
    if (self.rank == 1) {
      EXPECT_TRUE(supplied.Supply(0, view).ok());
    }
    EXPECT_TRUE(supplied.Wait().ok());
    EXPECT_EQ(cell, 7);
    if (self.rank == 0) cell = 8;
    if (self.rank == 1) {
      EXPECT_TRUE(connection->Rebind({}, {{{"x", view}}}).ok());
    }
    EXPECT_TRUE(connection->Start({.version = 2}).value().Wait().ok());
    EXPECT_EQ(cell, 8);
  });
}

TEST(ConnectMemoryTest, SourcesThatNobodyAsksForMayBeIgnored) {
  RunSessions(2, {}, [](Rank& self, Session* session) {
    std::array<int64_t, 2> cells = {7, 8};
    ConnectSpec own;
    if (self.rank == 0) {
      own.sources.push_back(OneElement(0, &cells[0]));
      own.sources.push_back(OneElement(0, &cells[1]));
      own.sources.back().name = "unused";
    } else {
      own.targets.push_back(OneElement(1, &cells[0]));
      own.ignore_unused_sources = true;  // enough on one rank
    }
    const auto connection = Connect(session, own).value();
    EXPECT_EQ(connection->transfer()->spec().tensors.size(), 1u);
    EXPECT_TRUE(connection->Start({.version = 1}).value().Wait().ok());
    EXPECT_EQ(cells[0], 7);
    if (self.rank == 0) {
      const TensorView view = DenseView(&cells[1], {1}, DType::kI64);
      EXPECT_TRUE(connection->Rebind({{{"unused", view}}}, {}).ok());
    }
  });
}

TEST(ConnectCallsTest, NoSession) {
  EXPECT_EQ(Connect(nullptr, {}).status().code(), StatusCode::kInvalidArgument);
}

TEST(ConnectCallsTest, ARunIsInFlight) {
  RunSessions(kOwnRanks, {}, [](Rank& self, Session* session) {
    Own own(self.rank);
    const auto connection = Connect(session, own.spec).value();
    const auto run = connection->Start({.version = 1}).value();
    for (const absl::Status& status : {Connect(session, own.spec).status(), connection->Drop()}) {
      EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition) << status;
    }
    ASSERT_TRUE(run.Wait().ok());
    self.meet();  // nobody calls Drop before all have been refused
    EXPECT_TRUE(connection->Drop().ok());
    RunGood(session, self.rank);
  });
}

TEST(RefuseTest, StandsInForAnyCallAndReachesEveryRankWithItsCode) {
  RunSessions(kOwnRanks, {}, [](Rank& self, Session* session) {
    Own own(self.rank);
    StreamOptions stream;
    stream.source.uri = "file:/no/such/folder";
    const std::vector<std::pair<std::string, std::function<absl::Status()>>> calls = {
        {"Compile", [&] { return session->Compile({}).status(); }},
        {"Connect", [&] { return Connect(session, own.spec).status(); }},
        {"AllocateShared", [&] { return session->AllocateShared(8).status(); }},
        {"OpenStream", [&] { return OpenStream(session, stream).status(); }}};
    const std::string tensor = "x' of rank 3";
    for (const auto& [name, call] : calls) {
      for (const StatusCode code : {StatusCode::kInvalidArgument, StatusCode::kUnimplemented,
                                    StatusCode::kNotFound, StatusCode::kDeadlineExceeded}) {
        const absl::Status why = WithFields(absl::Status(code, "rank 7"), {.tensor = tensor});
        const absl::Status one = self.rank == 3 ? session->Refuse(name, why) : call();
        EXPECT_EQ(one, WithFields(absl::Status(code, name + " failed on rank 3: rank 7"),
                                  {.ranks = {3}, .tensor = tensor}));
        // The first one's words; and where no rank makes the call, each rank's own.
        const absl::Status own_why(code, "of rank " + std::to_string(self.rank));
        const absl::Status two =
            self.rank == 1 || self.rank == 2 ? session->Refuse(name, own_why) : call();
        EXPECT_EQ(two, WithFields(absl::Status(code, name + " failed on ranks 1, 2: of rank 1"),
                                  {.ranks = {1, 2}}));
        EXPECT_EQ(session->Refuse(name, own_why), own_why);
      }
    }
    EXPECT_TRUE(absl::IsInvalidArgument(session->Refuse("Connect", absl::OkStatus())));
    RunGood(session, self.rank);
  });
}

}  // namespace
}  // namespace sluice::session_test
