// Calls of Connect that meet others, or nobody.
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "session/connect_own.h"
#include "session/job.h"
#include "sluice/stream.h"

namespace sluice::session_test {
namespace {

using absl::StatusCode;
using testing::HasSubstr;

TEST(ConnectCallsTest, NoSession) {
  EXPECT_EQ(Connect(nullptr, {}).status().code(), StatusCode::kInvalidArgument);
}

TEST(ConnectCallsTest, OneRankMakesAnotherCall) {
  RunRanks(kOwnRanks, [](Rank& self) {
    const auto session = OpenSession(self, {});
    ASSERT_NE(session, nullptr);
    Own own(self.rank);
    const absl::Status status =
        self.rank == 2 ? session->Compile({}).status() : Connect(session.get(), own.spec).status();
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition) << status;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("Connect on ranks 0, 1, 3, Compile on rank 2"));
    RunGood(session.get(), self.rank);
    EXPECT_TRUE(session->Close().ok());
  });
}

TEST(ConnectCallsTest, ARunIsInFlight) {
  RunRanks(kOwnRanks, [](Rank& self) {
    const auto session = OpenSession(self, {});
    ASSERT_NE(session, nullptr);
    Own own(self.rank);
    const auto connection = Connect(session.get(), own.spec);
    ASSERT_TRUE(connection.ok()) << connection.status();
    const auto run = (*connection)->Start({.version = 1});
    ASSERT_TRUE(run.ok()) << run.status();
    for (const absl::Status& status :
         {Connect(session.get(), own.spec).status(), (*connection)->Drop()}) {
      EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition) << status;
    }
    ASSERT_TRUE(run->Wait().ok());
    self.meet();  // nobody calls Drop before all have been refused
    EXPECT_TRUE((*connection)->Drop().ok());
    RunGood(session.get(), self.rank);
    EXPECT_TRUE(session->Close().ok());
  });
}

TEST(ConnectCallsTest, ARankThatDoesNotCallIsNamed) {
  RunRanks(3, [](Rank& self) {
    SessionOptions options;
    options.timeout = absl::Seconds(2);
    const auto session = OpenSession(self, options);
    ASSERT_NE(session, nullptr);
    if (self.rank != 1) {
      const absl::Status status = Connect(session.get(), {}).status();
      EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded) << status;
      EXPECT_THAT(std::string(status.message()), HasSubstr("rank 1 did not call Connect"));
    }
    self.meet();
  });
}

TEST(RefuseTest, StandsInForAnyCallAndReachesEveryRankWithItsCode) {
  RunRanks(kOwnRanks, [](Rank& self) {
    const auto session = OpenSession(self, {});
    ASSERT_NE(session, nullptr);
    Own own(self.rank);
    StreamOptions stream;
    stream.source.uri = "file:/no/such/folder";
    const std::vector<std::pair<std::string, std::function<absl::Status()>>> calls = {
        {"Compile", [&] { return session->Compile({}).status(); }},
        {"Connect", [&] { return Connect(session.get(), own.spec).status(); }},
        {"AllocateShared", [&] { return session->AllocateShared(8).status(); }},
        {"OpenStream", [&] { return OpenStream(session.get(), stream).status(); }}};
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
    RunGood(session.get(), self.rank);
    EXPECT_TRUE(session->Close().ok());
  });
}

}  // namespace
}  // namespace sluice::session_test
