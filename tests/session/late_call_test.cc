// A collective call that a rank makes after the others have given it up.
#include <string>

#include "gmock/gmock.h"
#include "main/fails.h"
#include "session/job.h"
#include "sluice/connect.h"

namespace sluice::session_test {
namespace {

TEST(LateCallTest, HearsThatTheOthersHaveFailed) {
  for (const std::string call : {"Compile", "Drop", "AllocateShared", "Connect"}) {
    RunRanks(3, [&call](Rank& self) {
      const auto session = OpenSession(self, {.timeout = absl::Seconds(2)});
      Bound bound = CompileBound(session.get(), Ring(3, 8));
      const auto make = [&]() -> absl::Status {
        if (call == "Compile") return session->Compile(Ring(3, 8)).status();
        if (call == "Drop") return session->Drop(bound.transfer);
        if (call == "Connect") return Connect(session.get(), {}).status();
        return session->AllocateShared(4096).status();
      };
      absl::Status status;
      if (self.rank != 2) status = make();
      self.meet();  // rank 2 has been silent until now
      if (self.rank == 2) {
        status = make();
        EXPECT_THAT(std::string(status.message()), testing::HasSubstr("failed: "));
      }
      EXPECT_THAT(status, Fails(absl::StatusCode::kDeadlineExceeded,
                                "rank 2 did not call " + call + " within 2s"));
      EXPECT_EQ(session->Poll(), status);
      if (self.rank != 2) {
        EXPECT_TRUE(session->Close().ok()) << "nothing is under way";
      }
      self.meet();
    });
  }
}

}  // namespace
}  // namespace sluice::session_test
