// What a forked child can do with its parent's session: nothing, but it is told so.
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <utility>

#include "gtest/gtest.h"
#include "session/job.h"
#include "sluice/checkpoint.h"
#include "sluice/stream.h"

namespace sluice::session_test {
namespace {

// What the child found wrong; 0: nothing.
int TryInChild(std::unique_ptr<Session> session, Bound* bound, Run done) {
  const auto refused = [](const absl::Status& status) {
    return status.code() == absl::StatusCode::kFailedPrecondition &&
           status.message().find("forked") != absl::string_view::npos;
  };
  Event event;
  if (!refused(session->Poll())) return 1;
  if (!refused(
          session->Start(bound->transfer, bound->memory.src(), bound->memory.dst()).status())) {
    return 2;
  }
  if (!refused(done.Wait())) return 3;
  if (!refused(done.WaitFor(absl::ZeroDuration()).status())) return 14;
  if (!refused(done.Cancel())) return 4;
  if (!refused(session->Compile(AllToAll(1, 1024)).status())) return 5;
  if (!refused(session->Drop(bound->transfer))) return 6;
  if (!refused(session->AllocateShared(4096).status())) return 7;
  if (!refused(OpenStream(session.get(), StreamOptions()).status())) return 8;
  if (!refused(LoadCheckpoint(session.get(), "file:/none", {}, CheckpointOptions()).status()))
    return 9;
  if (!refused(SaveCheckpoint(session.get(), "/none", {}, CheckpointOptions()).status())) return 10;
  if (!refused(done.Supply(0, TensorView()))) return 11;
  if (session->PollEvent(&event)) return 12;
  if (!refused(session->Close())) return 13;
  session.reset();
  return 0;
}

class ForkTest : public testing::TestWithParam<bool> {};

TEST_P(ForkTest, TheChildIsToldAndTheParentGoesOn) {
  RunRanks(1, [](Rank& self) {
    SessionOptions options;
    options.bucket_bytes = 1024;
    options.progress_thread = GetParam();
    auto session = OpenSession(self, options);
    ASSERT_NE(session, nullptr);
    Bound bound = CompileBound(session.get(), AllToAll(1, 8192));
    ASSERT_NE(bound.transfer, nullptr);
    const auto done = RunOnce(session.get(), &bound, 1);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      alarm(60);  // a hang ends
      _exit(TryInChild(std::move(session), &bound, done));
    }
    int outcome = 0;
    ASSERT_EQ(waitpid(child, &outcome, 0), child);
    EXPECT_TRUE(WIFEXITED(outcome)) << "signal " << WTERMSIG(outcome);
    EXPECT_EQ(WEXITSTATUS(outcome), 0);
    RunOnce(session.get(), &bound, 2);
    EXPECT_TRUE(session->Close().ok());
  });
}

INSTANTIATE_TEST_SUITE_P(WithThread, ForkTest, testing::Bool());

}  // namespace
}  // namespace sluice::session_test
