// The memory of a connection: bound, bound anew, given later, or not asked for.
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "session/job.h"
#include "sluice/connect.h"

namespace sluice::session_test {
namespace {

using absl::StatusCode;
using testing::HasSubstr;

void ExpectCode(const absl::Status& status, StatusCode code, const std::string& text) {
  EXPECT_EQ(status.code(), code) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(text));
}

// One element from rank 0 to rank 1.
ConnectTensor OneElement(int rank, void* data, absl::Span<const int64_t> local = {1}) {
  return {
      {"x", {1}, DType::kI64, MakeLayout({1}, {rank}, "R"), DenseView(data, local, DType::kI64)}};
}

TEST(ConnectMemoryTest, OtherMemoryIsUsedFromTheNextRunOn) {
  RunRanks(2, [](Rank& self) {
    const auto session = OpenSession(self, {});
    ASSERT_NE(session, nullptr);
    std::array<int64_t, 3> cells = {7, 8, 9};
    ConnectSpec own;
    (self.rank == 0 ? own.sources : own.targets).push_back(OneElement(self.rank, &cells[0]));
    const auto connection = Connect(session.get(), own);
    ASSERT_TRUE(connection.ok()) << connection.status();
    const auto move = [&] {
      if (self.rank == 1) cells = {0, 0, 0};
      const auto run = (*connection)->Start();
      ASSERT_TRUE(run.ok()) << run.status();
      ASSERT_TRUE(run->Wait().ok());
    };
    const auto rebind = [&](const std::string& name, const TensorView& view) {
      const Connection::NamedView named = {name, view};
      return self.rank == 0 ? (*connection)->Rebind({named}, {})
                            : (*connection)->Rebind({}, {named});
    };
    move();
    const auto view = [&](size_t i, const std::vector<int64_t>& shape = {1}) {
      return DenseView(&cells[i], shape, DType::kI64);
    };
    EXPECT_TRUE(rebind("x", view(1)).ok());
    move();
    if (self.rank == 1) {
      EXPECT_THAT(cells, testing::ElementsAre(0, 8, 0));
    }
    // What does not fit changes nothing.
    ExpectCode(rebind("x", view(2, {2})), StatusCode::kInvalidArgument,
               "view has shape [2], the layout needs [1]");
    ExpectCode(rebind("x", TensorView{}), StatusCode::kInvalidArgument, "'x'");
    ExpectCode(rebind("y", view(2)), StatusCode::kNotFound,
               self.rank == 0 ? "this rank gave no source 'y'" : "this rank gave no target 'y'");
    const std::array<Connection::NamedView, 2> half_good = {{{"x", view(2)}, {"y", view(2)}}};
    ExpectCode(self.rank == 0 ? (*connection)->Rebind(half_good, {})
                              : (*connection)->Rebind({}, half_good),
               StatusCode::kNotFound, "'y'");
    move();
    if (self.rank == 1) {
      EXPECT_THAT(cells, testing::ElementsAre(0, 8, 0));
    }
    EXPECT_TRUE(session->Close().ok());
  });
}

// A run that was bound once is used again, for what else the transfer is started with.
TEST(ConnectMemoryTest, OtherViewsInBetweenAreNotTakenForTheBoundOnes) {
  for (const bool progress_thread : {false, true}) {
    RunRanks(2, [&](Rank& self) {
      SessionOptions options;
      options.progress_thread = progress_thread;
      const auto session = OpenSession(self, options);
      ASSERT_NE(session, nullptr);
      std::array<int64_t, 2> cells = {7, 8};
      if (self.rank == 1) cells = {0, 0};
      ConnectSpec own;
      (self.rank == 0 ? own.sources : own.targets).push_back(OneElement(self.rank, &cells[0]));
      const auto connection = Connect(session.get(), own);
      ASSERT_TRUE(connection.ok()) << connection.status();
      Transfer* const transfer = (*connection)->transfer();
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
      StartOptions late;
      late.late_destinations = true;
      for (int round = 0; round < 3; ++round) {
        wait((*connection)->Start());
        expect(7, 0);
        wait(start_other({}));
        expect(0, 8);
        wait((*connection)->Start());
        expect(7, 0);
        const auto supplied = start_other(late);
        ASSERT_TRUE(supplied.ok()) << supplied.status();
        if (self.rank == 1) {
          EXPECT_TRUE(supplied->Supply(0, other).ok());
        }
        EXPECT_TRUE(supplied->Wait().ok());
        expect(0, 8);
        // Both are in flight, each with a run of its own, and none is the one before.
        const auto bound = (*connection)->Start();
        wait(start_other({}));
        wait(bound);
        expect(7, 8);
      }
      EXPECT_TRUE(session->Close().ok());
    });
  }
}

// The run in flight goes on with the memory that it was started with.
TEST(ConnectMemoryTest, RebindDoesNotReachRunsInFlight) {
  RunRanks(2, [](Rank& self) {
    const auto session = OpenSession(self, {});
    ASSERT_NE(session, nullptr);
    std::array<int64_t, 2> cells = {7, 8};
    if (self.rank == 1) cells = {0, 0};
    ConnectSpec own;
    (self.rank == 0 ? own.sources : own.targets).push_back(OneElement(self.rank, &cells[0]));
    const auto connection = Connect(session.get(), own);
    ASSERT_TRUE(connection.ok()) << connection.status();
    const auto rebind = [&](size_t i) {
      const Connection::NamedView named = {"x", DenseView(&cells[i], {1}, DType::kI64)};
      return self.rank == 0 ? (*connection)->Rebind({named}, {})
                            : (*connection)->Rebind({}, {named});
    };
    for (int round = 0; round < 3; ++round) {
      const auto first = (*connection)->Start();
      ASSERT_TRUE(first.ok()) << first.status();
      EXPECT_TRUE(rebind(1).ok());
      const auto second = (*connection)->Start();
      ASSERT_TRUE(second.ok()) << second.status();
      EXPECT_TRUE(rebind(0).ok());
      EXPECT_TRUE(first->Wait().ok());
      EXPECT_TRUE(second->Wait().ok());
      if (self.rank == 1) {
        EXPECT_THAT(cells, testing::ElementsAre(7, 8));
        cells = {0, 0};
      }
    }
    EXPECT_TRUE(session->Close().ok());
  });
}

TEST(ConnectMemoryTest, TargetsMayGetTheirMemoryLater) {
  RunRanks(2, [](Rank& self) {
    const auto session = OpenSession(self, {});
    ASSERT_NE(session, nullptr);
    int64_t cell = self.rank == 0 ? 7 : 0;
    ConnectSpec own;
    if (self.rank == 0) own.sources.push_back(OneElement(0, &cell));
    if (self.rank == 1) own.targets.push_back(OneElement(1, nullptr));
    own.late_targets = self.rank == 1;
    const auto connection = Connect(session.get(), own);
    ASSERT_TRUE(connection.ok()) << connection.status();
    StartOptions late;
    late.late_destinations = true;
    late.version = 1;
    const TensorView view = DenseView(&cell, {1}, DType::kI64);
    const auto supplied = (*connection)->Start(late);
    ASSERT_TRUE(supplied.ok()) << supplied.status();
    if (self.rank == 1) {
      EXPECT_TRUE(supplied->Supply(0, view).ok());
    }
    EXPECT_TRUE(supplied->Wait().ok());
    EXPECT_EQ(cell, 7);
    if (self.rank == 0) cell = 8;
    if (self.rank == 1) {
      EXPECT_TRUE((*connection)->Rebind({}, {{{"x", view}}}).ok());
    }
    const auto bound = (*connection)->Start({.version = 2});
    ASSERT_TRUE(bound.ok()) << bound.status();
    EXPECT_TRUE(bound->Wait().ok());
    EXPECT_EQ(cell, 8);
    EXPECT_TRUE(session->Close().ok());
  });
}

TEST(ConnectMemoryTest, SourcesThatNobodyAsksForMayBeIgnored) {
  RunRanks(2, [](Rank& self) {
    const auto session = OpenSession(self, {});
    ASSERT_NE(session, nullptr);
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
    const auto connection = Connect(session.get(), own);
    ASSERT_TRUE(connection.ok()) << connection.status();
    EXPECT_EQ((*connection)->transfer()->spec().tensors.size(), 1u);
    const auto run = (*connection)->Start({.version = 1});
    ASSERT_TRUE(run.ok()) << run.status();
    EXPECT_TRUE(run->Wait().ok());
    EXPECT_EQ(cells[0], 7);
    if (self.rank == 0) {
      const TensorView view = DenseView(&cells[1], {1}, DType::kI64);
      EXPECT_TRUE((*connection)->Rebind({{{"unused", view}}}, {}).ok());
    }
    EXPECT_TRUE(session->Close().ok());
  });
}

}  // namespace
}  // namespace sluice::session_test
