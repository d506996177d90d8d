// What a forked child can do with its parent's session: nothing, but it is told so.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"
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
  // A thread of the parent may have held a lock just then.
  if (session->options().progress_thread) {
    session->ResetCounters();
    if (session->counters().buckets_finished != 0 || session->trace() != nullptr) return 15;
  }
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
    options.trace_events = 16;
    auto session = OpenSession(self, options);
    Bound bound = CompileBound(session.get(), AllToAll(1, 8192));
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

// Items that were lent can be read after the stream in the child, and given back.
TEST_P(ForkTest, LeasesOutliveTheChildsStream) {
  RunRanks(1, [](Rank& self) {
    auto session = OpenSession(self, {.progress_thread = GetParam()});
    StreamOptions wanted;
    wanted.source.generator = [](int64_t item, absl::Span<std::byte> into) {
      std::fill(into.begin(), into.end(), static_cast<std::byte>(item + 1));
      return absl::OkStatus();
    };
    wanted.source.generator_items = 4;
    wanted.source.item_bytes = 64;
    auto stream = OpenStream(session.get(), wanted).value();
    auto lease = stream->Next().value();
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      alarm(60);
      stream.reset();
      session.reset();
      const bool is_there = *static_cast<const std::byte*>(lease.view(0).data) == std::byte{1};
      lease.Release();
      _exit(is_there ? 0 : 1);
    }
    int outcome = 0;
    ASSERT_EQ(waitpid(child, &outcome, 0), child);
    EXPECT_TRUE(WIFEXITED(outcome)) << "signal " << WTERMSIG(outcome);
    EXPECT_EQ(WEXITSTATUS(outcome), 0);
    lease.Release();
    for (int item = 1; item < 4; ++item) EXPECT_TRUE(stream->Next().ok());
    stream.reset();
    EXPECT_TRUE(session->Close().ok());
  });
}

// Ends a session in a child while threads of the parent sleep in its locks and waits.
TEST(ForkWaitTest, AChildsSessionEndsWhileTheParentWaits) {
  constexpr absl::Duration kPause = absl::Milliseconds(20);
  std::unique_ptr<Session> waiting;
  std::atomic<bool> is_started = false;
  RunRanks(2, [&](Rank& self) {
    auto session = OpenSession(self, {.progress_thread = true});
    Bound bound = CompileBound(session.get(), AllToAll(2, 8192));
    if (self.rank == 0) {
      const auto run = StartRun(session.get(), &bound, 1);
      waiting = std::move(session);
      is_started = true;
      EXPECT_TRUE(run.Wait().ok());
      EXPECT_TRUE(waiting->Close().ok());
      waiting.reset();
      return;
    }
    while (!is_started) absl::SleepFor(kPause);
    absl::SleepFor(kPause);  // until rank 0 and both progress threads sleep
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      alarm(60);
      waiting.reset();
      _exit(0);
    }
    int outcome = 0;
    ASSERT_EQ(waitpid(child, &outcome, 0), child);
    EXPECT_TRUE(WIFEXITED(outcome)) << "signal " << WTERMSIG(outcome);
    EXPECT_TRUE(StartRun(session.get(), &bound, 1).Wait().ok());
    EXPECT_TRUE(session->Close().ok());
  });
}

INSTANTIATE_TEST_SUITE_P(WithThread, ForkTest, testing::Bool());

}  // namespace
}  // namespace sluice::session_test
