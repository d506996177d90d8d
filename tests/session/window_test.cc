// Windows, memory that comes late, and events.
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "main/fails.h"
#include "oracle/sampled.h"
#include "session/job.h"
#include "session/late_run.h"
#include "session/launch.h"

namespace sluice::session_test {
namespace {

using testing::HasSubstr;

SessionOptions Windowed(int64_t slots = 2) {
  return {.bucket_bytes = 1024, .budget_buckets = slots};
}

// `windows` windows of two tensors each, which every rank has a part of.
TransferSpec Windows(int size, int windows) {
  TransferSpec spec;
  for (int t = 0; t < 2 * windows; ++t) {
    spec.tensors.push_back(AllToAll(size, 1024).tensors[0]);
    spec.tensors.back().name = absl::StrCat("w", t);
    // The order of tensors is not that of windows.
    spec.tensors.back().window = 10 * (windows - t / 2);
  }
  return spec;
}

class LateJobTest : public testing::TestWithParam<int> {};

TEST_P(LateJobTest, EveryTensorIsRightWhenItIsDone) {
  const int size = GetParam();
  for (const uint64_t seed : oracle::Seeds(50)) {
    const RandomJob job = MakeRandomJob(seed * 100 + static_cast<uint64_t>(size) + 70, size);
    RunRanks(size, [&](Rank& self) { RunLateJob(self, job, seed); });
    ASSERT_FALSE(HasFailure()) << "seed " << seed << " with " << size << " ranks";
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, LateJobTest, testing::ValuesIn(oracle::JobSizes({1, 2, 3, 5, 8})),
                         testing::PrintToStringParamName());

TEST(WindowTest, WithoutLateDestinationsMemoryMustBeThere) {
  RunSessions(2, Windowed(), [](Rank&, Session* session) {
    Bound bound = CompileBound(session, AllToAll(2, 1024));
    bound.memory.Prepare(1);
    const StartOptions events = {.events = true};
    const std::vector<TensorView> none(1);
    const auto run = session->Start(bound.transfer, bound.memory.src(), none, events);
    ASSERT_TRUE(run.ok());
    EXPECT_THAT(run->Wait(), Fails(absl::StatusCode::kInvalidArgument, "destination of tensor 0"));
    Event event;
    ASSERT_TRUE(session->PollEvent(&event));
    EXPECT_EQ(event.kind, Event::Kind::kFailed);
    EXPECT_EQ(event.run, *run);
    EXPECT_EQ(event.status, run->Wait());
    EXPECT_FALSE(session->PollEvent(&event));
    RunOnce(session, &bound, 2);
    EXPECT_FALSE(session->PollEvent(&event)) << "that run asked for none";
  });
}

TEST(WindowTest, MemoryThatNeverComesIsNamed) {
  RunRanks(3, [](Rank& self) {
    SessionOptions options = Windowed();
    options.timeout = absl::Seconds(2);
    const auto session = OpenSession(self, options);
    Bound bound = CompileBound(session.get(), Windows(3, 2));
    RunOnce(session.get(), &bound, 1);
    bound.memory.Prepare(2);
    std::vector<TensorView> dst = bound.memory.dst();
    StartOptions options_of_run;
    if (self.rank == 1) {
      dst[0].data = nullptr;  // of the last window
      options_of_run.late_destinations = true;
    }
    const auto run = session->Start(bound.transfer, bound.memory.src(), dst, options_of_run);
    ASSERT_TRUE(run.ok());
    const absl::Status status = run->Wait();
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
    // Rank 1 says so itself, or the others do.
    EXPECT_THAT(std::string(status.message()), HasSubstr("memory for tensor"));
    EXPECT_THAT(std::string(status.message()), HasSubstr("w0"));
    EXPECT_THAT(std::string(status.message()), HasSubstr("run 2"));
    int failed = 0;
    for (Event event; session->PollEvent(&event);) {
      if (event.kind != Event::Kind::kFailed) continue;
      EXPECT_EQ(event.status, status);
      ++failed;
    }
    EXPECT_EQ(failed, self.rank == 1 ? 1 : 0) << "of ranks that asked for events";
    self.meet();
  });
}

}  // namespace
}  // namespace sluice::session_test
