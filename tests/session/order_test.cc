// Ranks that start transfers in different orders: all are told, by names of ranks and runs, long
// before the timeout.
#include <cstddef>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "session/job.h"
#include "session/launch.h"

namespace sluice::session_test {
namespace {

using absl::StatusCode;
using testing::HasSubstr;

// So late that a test which comes to it fails.
SessionOptions Patient() {
  SessionOptions options;
  options.bucket_bytes = 1024;
  options.timeout = absl::Seconds(24);
  return options;
}

// Three transfers among `size` ranks; the last one has other ranks and another class.
std::vector<Bound> CompileThree(Session* session, int size) {
  TransferSpec other = Ring(size, 8);
  other.priority_class = 2;
  std::vector<Bound> bounds;
  for (const TransferSpec& spec : {Ring(size, 8), AllToAll(size, 4096), other}) {
    bounds.push_back(CompileBound(session, spec));
    EXPECT_NE(bounds.back().transfer, nullptr);
  }
  return bounds;
}

// Starts transfers in the order that `order` gives, and expects the error that names `text`.
void ExpectTold(Rank& self, Session* session, std::vector<Bound>* bounds,
                const std::vector<size_t>& order, const std::string& text) {
  absl::Status status;
  for (const size_t t : order) {
    Bound& bound = (*bounds)[t];
    bound.memory.Prepare(2);
    const auto run = session->Start(bound.transfer, bound.memory.src(), bound.memory.dst());
    status.Update(run.status());
  }
  while (status.ok()) status = session->Poll();
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(text));
  EXPECT_THAT(std::string(status.message()), HasSubstr(" on rank 1"));
  self.meet();
}

TEST(OrderTest, TwoTransfersThatHaveRunBefore) {
  for (const size_t second : {size_t{1}, size_t{2}}) {
    RunRanks(3, [second](Rank& self) {
      const auto session = OpenSession(self, Patient());
      ASSERT_NE(session, nullptr);
      std::vector<Bound> bounds = CompileThree(session.get(), 3);
      for (Bound& bound : bounds) RunOnce(session.get(), &bound, 1);
      const std::vector<size_t> order =
          self.rank == 1 ? std::vector<size_t>{second, 0} : std::vector<size_t>{0, second};
      ExpectTold(self, session.get(), &bounds, order, "run 4 is transfer");
    });
  }
}

TEST(OrderTest, AFirstRunAgainstALaterOne) {
  for (const size_t unknown : {size_t{1}, size_t{2}}) {
    RunRanks(3, [unknown](Rank& self) {
      const auto session = OpenSession(self, Patient());
      ASSERT_NE(session, nullptr);
      std::vector<Bound> bounds = CompileThree(session.get(), 3);
      RunOnce(session.get(), &bounds[0], 1);
      const std::vector<size_t> order = {self.rank == 1 ? unknown : 0};
      ExpectTold(self, session.get(), &bounds, order, "run 2 is transfer");
    });
  }
}

TEST(OrderTest, AFirstRunAgainstOneThatIsDoneAlready) {
  RunRanks(3, [](Rank& self) {
    const auto session = OpenSession(self, Patient());
    ASSERT_NE(session, nullptr);
    // Rank 1 has no part in it.
    TransferSpec spec = Ring(3, 8);
    spec.tensors[0].src = MakeLayout({1}, {0}, "R");
    spec.tensors[0].dst = MakeLayout({1}, {2}, "R");
    std::vector<Bound> bounds;
    bounds.push_back(CompileBound(session.get(), spec));
    bounds.push_back(CompileBound(session.get(), AllToAll(3, 4096)));
    ASSERT_NE(bounds[1].transfer, nullptr);
    RunOnce(session.get(), &bounds[0], 1);
    const size_t mine = self.rank == 1 ? 1 : 0;
    ExpectTold(self, session.get(), &bounds, {mine}, "transfer 1 on rank 1");
  });
}

}  // namespace
}  // namespace sluice::session_test
