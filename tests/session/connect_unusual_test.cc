// Connections that are right, but rare: empty tensors, ranks with nothing, chains of names. Several
// connections at once, and memory that changes while a run is under way.
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "main/fails.h"
#include "session/job.h"
#include "session/specs.h"
#include "sluice/connect.h"

namespace sluice::session_test {
namespace {

using testing::Each;
using testing::HasSubstr;

// A tensor that one rank has whole, in `cells`.
template <size_t n>
ConnectTensor Whole(const std::string& name, int rank, std::array<int64_t, n>* cells) {
  const int64_t size = n;
  return Part(name, {size}, DType::kI64, MakeLayout({1}, {rank}, "R"),
              DenseView(cells->data(), {size}, DType::kI64));
}

ConnectTensor Empty(Layout layout) {
  return Part("empty", {0, 4}, DType::kF32, std::move(layout), {});
}

void RunOnce(Connection* connection) {
  EXPECT_EQ(connection->Start().value().Wait(), absl::OkStatus());
}

using Three = std::array<int64_t, 3>;

TEST(ConnectUnusualTest, EmptyTensorsAndARankWithNothing) {
  RunSessions(5, {}, [](Rank& self, Session* session) {
    Three cells = {1, 2, 3};
    ConnectSpec own;
    if (self.rank == 0) own.sources.push_back(Whole("x", 0, &cells));
    // Nobody has a byte of it. So rank 3 leaves it out, as it may, and views are not looked at.
    if (self.rank < 2) own.sources.push_back(Empty(MakeLayout({2}, {0, 1}, "S(0)")));
    if (self.rank == 2) own.targets.push_back(Empty(MakeLayout({2}, {2, 3}, "S(1)")));
    if (self.rank == 3) {
      cells.fill(0);
      own.targets.push_back(Whole("x", 3, &cells));
    }
    const auto connection = Connect(session, own).value();
    EXPECT_EQ(connection->transfer()->spec().tensors.size(), 2u);
    RunOnce(connection.get());
    EXPECT_THAT(cells, testing::ElementsAre(1, 2, 3));
  });
}

// A rename says where a target's bytes come from, and is not followed further.
TEST(ConnectUnusualTest, RenamesInChainsAndCycles) {
  RunSessions(2, {}, [](Rank& self, Session* session) {
    const int64_t first = self.rank == 0 ? 1 : 0;
    std::array<Three, 4> cells;
    for (size_t i = 0; i < 4; ++i) cells[i].fill(first * static_cast<int64_t>(i + 1));
    const std::array<const char*, 4> names = {"a", "b", "c", "d"};
    ConnectSpec own;
    for (size_t i = 0; i < 4; ++i) {
      (self.rank == 0 ? own.sources : own.targets).push_back(Whole(names[i], self.rank, &cells[i]));
    }
    // A chain a, b, c; and b, c are a cycle as well.
    if (self.rank == 1) own.renames = {{"a", "b"}, {"b", "c"}};
    if (self.rank == 0) own.renames = {{"c", "b"}, {"unasked", "a"}};
    own.ignore_unused_sources = true;
    const auto connection = Connect(session, own).value();
    RunOnce(connection.get());
    if (self.rank == 1) {
      EXPECT_THAT(cells[0], Each(2));
      EXPECT_THAT(cells[1], Each(3));
      EXPECT_THAT(cells[2], Each(2));
      EXPECT_THAT(cells[3], Each(4));
    }
  });
}

// Each rank has "x" and wants "x" of its own: the same name on both sides of one rank.
TEST(ConnectUnusualTest, OneNameAsSourceAndTarget) {
  RunSessions(3, {}, [](Rank& self, Session* session) {
    std::array<int64_t, 1> from = {self.rank + 7};
    Three to = {};
    ConnectSpec own;
    own.sources.push_back(Part("x", {3}, DType::kI64, MakeLayout({3}, {0, 1, 2}, "S(0)"),
                               DenseView(from.data(), {1}, DType::kI64)));
    own.targets.push_back(Whole("x", self.rank, &to));  // three meshes
    const auto connection = Connect(session, own).value();
    RunOnce(connection.get());
    EXPECT_THAT(to, testing::ElementsAre(7, 8, 9));
  });
}

TEST(ConnectUnusualTest, SeveralConnectionsAtOnce) {
  RunSessions(2, {}, [](Rank& self, Session* session) {
    constexpr size_t kConnections = 5;
    std::array<Three, kConnections> cells;
    std::vector<std::unique_ptr<Connection>> connections;
    for (size_t i = 0; i < kConnections; ++i) {
      ConnectSpec own;
      (self.rank == 0 ? own.sources : own.targets).push_back(Whole("x", self.rank, &cells[i]));
      connections.push_back(Connect(session, own).value());
    }
    const auto run_all = [&](int64_t version) {
      std::vector<sluice::Run> runs;
      for (size_t i = 0; i < kConnections; ++i) {
        const auto value = static_cast<int64_t>(i) + 10 * version;
        cells[i].fill(self.rank == 0 ? value : 0);
        if (connections[i]->transfer() == nullptr) continue;
        runs.push_back(connections[i]->Start({.version = version}).value());
      }
      for (const sluice::Run& run : runs) EXPECT_TRUE(run.Wait().ok());
      for (size_t i = 0; i < kConnections; ++i) {
        const bool is_there = self.rank == 0 || connections[i]->transfer() != nullptr;
        EXPECT_THAT(cells[i], Each(is_there ? static_cast<int64_t>(i) + 10 * version : 0));
      }
    };
    run_all(1);
    EXPECT_TRUE(connections[1]->Drop().ok());
    EXPECT_TRUE(connections[4]->Drop().ok());
    run_all(2);
  });
}

// A target that was to come late and never came: as where Session::Start gets no memory.
TEST(ConnectUnusualTest, LateTargetsThatNeverCome) {
  RunRanks(2, [](Rank& self) {
    const auto session = OpenSession(self, {.timeout = absl::Seconds(60)});
    Three cells = {1, 2, 3};
    ConnectSpec own;
    (self.rank == 0 ? own.sources : own.targets).push_back(Whole("x", self.rank, &cells));
    if (self.rank == 1) own.targets[0].view.data = nullptr;
    own.late_targets = true;
    const auto connection = Connect(session.get(), own).value();
    const auto run = connection->Start({.version = 1});
    const absl::Status status = run.ok() ? run->Wait() : run.status();
    EXPECT_THAT(status, Fails(absl::StatusCode::kInvalidArgument,
                              testing::AllOf(HasSubstr("'x'"), HasSubstr("no data"))));
  });
}

}  // namespace
}  // namespace sluice::session_test
