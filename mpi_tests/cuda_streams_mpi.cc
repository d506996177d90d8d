// Runs in streams of the caller's, with events and late destinations, between two processes: over
// the fakes, and on GPUs. The streams' kernels are slow, and check what they find.
#include <functional>
#include <memory>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cuda/cuda_stream_job.h"
#include "cuda_world_mpi.h"
#include "gtest/gtest.h"
#include "session/job.h"

namespace sluice::session_test {
namespace {

constexpr int kTensors = 12;

// A session with fewer slots than the job has tensors.
void RunJobs(Carrier carrier, bool progress_thread,
             const std::function<void(Rank&, Session*, Transfer*)>& body) {
  RunOwnRankOn(carrier, [&](Rank& self) {
    SessionOptions options;
    options.bucket_bytes = 64 << 10;
    options.budget_buckets = 8;
    options.progress_thread = progress_thread;
    const auto session = OpenSession(self, options);
    ASSERT_NE(session, nullptr);
    const auto transfer = session->Compile(StreamJobSpec(kTensors));
    ASSERT_TRUE(transfer.ok()) << transfer.status();
    body(self, session.get(), *transfer);
    EXPECT_TRUE(session->Close().ok());
    self.meet();
  });
}

StreamJobOptions OptionsOn(const Rank& self) {
  StreamJobOptions options;
  options.tensors = kTensors;
  options.ordinal = self.accelerator->ordinal();
  return options;
}

void ExpectAllDone(const StreamJob& job) {
  EXPECT_EQ(job.done(), kTensors);
  EXPECT_EQ(job.CountWrong(), 0);
  EXPECT_EQ(job.failed(), 0);
}

using Way = std::tuple<Carrier, StreamKind, Given, DeviceKind>;

class CudaStreamsMpiTest : public testing::TestWithParam<Way> {};

TEST_P(CudaStreamsMpiTest, EventsAndMemoryKeepTheStreamsOrder) {
  const auto [carrier, kind, given, dst_kind] = GetParam();
  RunJobs(carrier, false,
          [&, stream = kind, given = given, dst = dst_kind](Rank& self, Session* session,
                                                            Transfer* transfer) {
            StreamJobOptions options = OptionsOn(self);
            options.stream = stream;
            options.given = given;
            options.dst_kind = dst;
            StreamJob job(self.rank, options);
            for (int round = 1; round <= 3; ++round) {
              ASSERT_TRUE(job.Start(session, transfer, round).ok());
              const absl::Status status = Complete(session, {&job});
              ASSERT_TRUE(status.ok()) << status;
              ExpectAllDone(job);
            }
            self.meet();
          });
}

std::string NameOfWay(const testing::TestParamInfo<Way>& test) {
  const auto [carrier, kind, given, dst_kind] = test.param;
  return absl::StrCat(NameOf(carrier),
                      kind == StreamKind::kOwn        ? "Own"
                      : kind == StreamKind::kBlocking ? "Blocking"
                                                      : "Default",
                      given == Given::kAtStart ? "AtStart"
                      : given == Given::kAhead ? "Ahead"
                                               : "Asked",
                      dst_kind == DeviceKind::kCuda ? "Device" : "Pinned");
}

INSTANTIATE_TEST_SUITE_P(
    All, CudaStreamsMpiTest,
    testing::Combine(testing::Values(Carrier::kMessages, Carrier::kCudaIpc, Carrier::kNccl),
                     testing::Values(StreamKind::kOwn, StreamKind::kBlocking, StreamKind::kDefault),
                     testing::Values(Given::kAtStart, Given::kAhead, Given::kAsked),
                     testing::Values(DeviceKind::kCuda, DeviceKind::kCudaHost)),
    NameOfWay);

// Whether a thread drives the session, too.
using Several = std::tuple<Carrier, bool>;

class CudaStreamRunsMpiTest : public testing::TestWithParam<Several> {};

// Of one stream, of several, and of the default one.
TEST_P(CudaStreamRunsMpiTest, RunsBesideEachOther) {
  const auto [carrier, progress_thread] = GetParam();
  RunJobs(carrier, progress_thread, [](Rank& self, Session* session, Transfer* transfer) {
    std::vector<std::unique_ptr<StreamJob>> jobs;
    std::vector<StreamJob*> all;
    for (const StreamKind kind : {StreamKind::kOwn, StreamKind::kDefault, StreamKind::kBlocking}) {
      StreamJobOptions options = OptionsOn(self);
      options.stream = kind;
      if (kind == StreamKind::kDefault) options.given = Given::kAsked;
      jobs.push_back(std::make_unique<StreamJob>(self.rank, options));
      all.push_back(jobs.back().get());
    }
    for (int round = 1; round <= 3; ++round) {
      int number = 10 * round;
      for (StreamJob* const job : all) {
        ASSERT_TRUE(job->Start(session, transfer, number++).ok());
      }
      const absl::Status status = Complete(session, all);
      ASSERT_TRUE(status.ok()) << status;
      for (const StreamJob* const job : all) ExpectAllDone(*job);
    }
    self.meet();
  });
}

// Nobody takes events until the run has ended.
TEST_P(CudaStreamRunsMpiTest, EventsNeedNotBeTaken) {
  const auto [carrier, progress_thread] = GetParam();
  RunJobs(carrier, progress_thread, [](Rank& self, Session* session, Transfer* transfer) {
    StreamJobOptions options = OptionsOn(self);
    options.given = Given::kAhead;
    StreamJob job(self.rank, options);
    ASSERT_TRUE(job.Start(session, transfer, 1).ok());
    const absl::Status status = job.run().Wait();
    ASSERT_TRUE(status.ok()) << status;
    job.ConsumeRest();
    ExpectAllDone(job);
    self.meet();
  });
}

// Both ranks give up while one window lacks its memory.
TEST_P(CudaStreamRunsMpiTest, CancelKeepsWhatWasDone) {
  const auto [carrier, progress_thread] = GetParam();
  RunJobs(carrier, progress_thread, [](Rank& self, Session* session, Transfer* transfer) {
    StreamJobOptions options = OptionsOn(self);
    options.given = Given::kAsked;
    StreamJob job(self.rank, options);
    for (int round = 1; round <= 3; ++round) {
      ASSERT_TRUE(job.Start(session, transfer, round).ok());
      Event event;
      while (job.done() < 3 * round) {
        ASSERT_TRUE(session->Poll().ok());
        while (job.done() < 3 * round && session->PollEvent(&event)) job.Take(event);
      }
      job.KeepMemory();
      ASSERT_TRUE(job.run().Cancel().ok());
      const absl::Status status = Complete(session, {&job});
      EXPECT_EQ(status.code(), absl::StatusCode::kCancelled) << status;
      EXPECT_EQ(job.failed(), 1);
      EXPECT_EQ(job.CountWrong(), 0);
    }
    self.meet();
  });
}

INSTANTIATE_TEST_SUITE_P(All, CudaStreamRunsMpiTest,
                         testing::Combine(testing::Values(Carrier::kMessages, Carrier::kCudaIpc,
                                                          Carrier::kNccl),
                                          testing::Bool()),
                         [](const testing::TestParamInfo<Several>& test) {
                           return absl::StrCat(NameOf(std::get<0>(test.param)),
                                               std::get<1>(test.param) ? "WithThread" : "");
                         });

}  // namespace
}  // namespace sluice::session_test
