// Connections that work: random halves with every byte verified, and what a connection keeps.
#include "sluice/connect.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "main/fails.h"
#include "oracle/sampled.h"
#include "session/connect_job.h"
#include "session/job.h"

namespace sluice::session_test {
namespace {

// A run of `connection`, verified.
void RunConnected(Connection* connection, ConnectMemory* memory, uint64_t round) {
  memory->Prepare(round);
  const auto run = connection->Start({.version = static_cast<int64_t>(round)}).value();
  ASSERT_EQ(run.Wait(), absl::OkStatus());
  EXPECT_EQ(memory->Check(round), "");
}

// What all ranks give.
std::vector<ConnectSpec> AllSpecs(const ConnectJob& job, int size, uint64_t seed) {
  std::vector<ConnectSpec> specs;
  for (int rank = 0; rank < size; ++rank) {
    oracle::Dice dice(seed * 100 + static_cast<uint64_t>(rank));
    specs.push_back(ConnectMemory(job, rank, &dice).spec());
  }
  return specs;
}

// Connects what all ranks give, and runs it so many times.
void ConnectAndRun(const ConnectJob& job, int size, uint64_t seed, uint64_t rounds) {
  const std::vector<std::string> order = PromisedOrder(AllSpecs(job, size, seed));
  RunSessions(size, job.options, [&](Rank& self, Session* session) {
    oracle::Dice dice(seed * 100 + static_cast<uint64_t>(self.rank));
    ConnectMemory memory(job, self.rank, &dice);
    const auto connection = Connect(session, memory.spec()).value();
    const TransferSpec& spec = connection->transfer()->spec();
    std::vector<std::string> names;
    for (const TensorTransfer& tensor : spec.tensors) names.push_back(tensor.name);
    EXPECT_EQ(names, order);
    EXPECT_EQ(spec.priority_class, job.truth.priority_class);
    for (uint64_t round = 1; round <= rounds; ++round) {
      RunConnected(connection.get(), &memory, round);
    }
    EXPECT_TRUE(connection->Drop().ok());
  });
}

TEST(ConnectTest, RandomHalves) {
  for (int size = 1; size <= 8; ++size) {
    for (const uint64_t seed : oracle::Seeds(32)) {
      const ConnectJob job = MakeConnectJob(seed * 10 + static_cast<uint64_t>(size), size);
      ConnectAndRun(job, size, seed, 3);
      ASSERT_FALSE(HasFailure()) << "size " << size << " seed " << seed;
    }
  }
}

TEST(ConnectTest, RandomBoxesAndCopies) {
  int boxed = 0, copied = 0;
  for (const int size : {1, 2, 3, 4, 6, 8, 16}) {
    const auto seeds = static_cast<uint64_t>(oracle::Thinned(size < 8 ? 32 : 12));
    for (uint64_t seed = 1; seed <= seeds; ++seed) {
      const ConnectJob job = MakeConnectBoxJob(seed * 100 + static_cast<uint64_t>(size), size);
      for (const TensorTransfer& tensor : job.truth.tensors) {
        boxed += tensor.src.boxes.empty() && tensor.dst.boxes.empty() ? 0 : 1;
      }
      for (const auto& [name, copies] : job.copies) copied += copies > 1 ? 1 : 0;
      ConnectAndRun(job, size, seed, 2);
      ASSERT_FALSE(HasFailure()) << "size " << size << " seed " << seed;
    }
  }
  EXPECT_GT(boxed, oracle::Thinned(200));
  EXPECT_GT(copied, oracle::Thinned(20));
}

// Two ranks train, two serve: the halves of one side say nothing of the other one.
ConnectJob TwoAndTwo() {
  TransferSpec truth;
  truth.tensors.push_back(Moved("a", {6, 4}, DType::kF32, MakeLayout({2}, {0, 1}, "S(0)"),
                                MakeLayout({2}, {2, 3}, "S(1)")));
  truth.tensors.push_back(
      Moved("b", {5}, DType::kI64, MakeLayout({2}, {0, 1}, "R"), MakeLayout({2}, {2, 3}, "S(0)")));
  return PlainJob(std::move(truth));
}

struct Connected {
  std::unique_ptr<Session> session;
  std::unique_ptr<ConnectMemory> memory;
  std::unique_ptr<Connection> connection;
};

Connected ConnectJobOf(Rank& self, const ConnectJob& job, const SessionOptions& options = {}) {
  Connected all;
  all.session = OpenSession(self, options);
  oracle::Dice dice(1);
  all.memory = std::make_unique<ConnectMemory>(job, self.rank, &dice, false);
  all.connection = Connect(all.session.get(), all.memory->spec()).value();
  return all;
}

TEST(ConnectTest, VersionsRise) {
  RunRanks(4, [](Rank& self) {
    const Connected all = ConnectJobOf(self, TwoAndTwo());
    EXPECT_EQ(all.connection->version(), absl::nullopt);
    RunConnected(all.connection.get(), all.memory.get(), 3);
    EXPECT_EQ(all.connection->version(), 3);
    EXPECT_THAT(all.connection->Start({.version = 3}).status(),
                Fails(absl::StatusCode::kInvalidArgument, "version 3 is to follow version 3"));
    EXPECT_THAT(all.session->Start(all.connection->transfer(), {}, {}, {.version = 9}).status(),
                Fails(absl::StatusCode::kInvalidArgument, "a version is for Connection::Start"));
    EXPECT_TRUE(all.connection->Start().value().Wait().ok());
    EXPECT_EQ(all.connection->version(), 3);
    RunConnected(all.connection.get(), all.memory.get(), 4);
    EXPECT_TRUE(all.session->Close().ok());
  });
}

TEST(ConnectTest, AThreadOfTheSessionsOwnDrivesRuns) {
  RunRanks(4, [](Rank& self) {
    const SessionOptions options = {.progress_thread = true};
    const Connected all = ConnectJobOf(self, TwoAndTwo(), options);
    for (uint64_t round = 1; round <= 20; ++round) {
      RunConnected(all.connection.get(), all.memory.get(), round);
    }
    EXPECT_TRUE(all.connection->Rebind({}, {}).ok());
    EXPECT_TRUE(all.connection->Drop().ok());
    EXPECT_TRUE(all.session->Close().ok());
  });
}

TEST(ConnectTest, ADroppedConnectionHasNoTransfer) {
  RunRanks(4, [](Rank& self) {
    Connected all = ConnectJobOf(self, TwoAndTwo());
    RunConnected(all.connection.get(), all.memory.get(), 1);
    EXPECT_TRUE(all.connection->Drop().ok());
    EXPECT_EQ(all.connection->transfer(), nullptr);
    for (const absl::Status& status :
         {all.connection->Start().status(), all.connection->Start({.version = 2}).status(),
          all.connection->Start({.version = 1}).status(),  // not above the last one either
          all.connection->Rebind({}, {}), all.connection->Drop()}) {
      EXPECT_THAT(status,
                  Fails(absl::StatusCode::kFailedPrecondition, "the connection has been dropped"));
    }
    // Another one, which is not dropped, and outlives its session.
    oracle::Dice dice(1);
    auto again = Connect(all.session.get(), all.memory->spec()).value();
    RunConnected(again.get(), all.memory.get(), 2);
    EXPECT_TRUE(all.session->Close().ok());
    all.session.reset();
  });
}

TEST(ConnectTest, NobodyHasAnything) {
  RunSessions(3, {}, [](Rank&, Session* session) {
    const auto connection = Connect(session, {}).value();
    EXPECT_TRUE(connection->transfer()->spec().tensors.empty());
    EXPECT_TRUE(connection->Start({.version = 1}).value().Wait().ok());
  });
}

TEST(ConnectTest, ManyTensorsOfManyStages) {
  // Each rank has a half of its own, of several pieces.
  constexpr int kSize = 4, kTensors = 400;
  TransferSpec truth;
  for (int t = 0; t < kTensors; ++t) {
    const int stage = t * kSize / kTensors;
    truth.tensors.push_back(Moved("stage" + std::to_string(t * 7919), {3}, DType::kI32,
                                  MakeLayout({1}, {stage}, "R"),
                                  MakeLayout({kSize}, Ranks(0, kSize), "R")));
  }
  const ConnectJob job = PlainJob(std::move(truth));
  RunRanks(kSize, [&](Rank& self) {
    const Connected all = ConnectJobOf(self, job);
    RunConnected(all.connection.get(), all.memory.get(), 1);
    EXPECT_TRUE(all.session->Close().ok());
  });
}

}  // namespace
}  // namespace sluice::session_test
