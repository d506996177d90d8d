// Calls of Connect that meet others, or nobody.
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "session/connect_own.h"
#include "session/job.h"

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

}  // namespace
}  // namespace sluice::session_test
