// Events of runs that take part in a stream of the caller's. What the stream gets after TensorDone
// comes after the tensor. Memory that is supplied is not touched before what the stream held then.
#include <cuda_runtime_api.h>

#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cuda/cuda_stream_job.h"
#include "cuda/fake_world.h"
#include "fakes/fake_cuda.h"
#include "fakes/fake_nccl.h"
#include "gmock/gmock.h"
#include "session/job.h"

namespace sluice::session_test {
namespace {

using testing::IsEmpty;

// Fewer slots than tensors, so that what is done makes room for what comes.
SessionOptions FewSlots(bool progress_thread = false) {
  return {.bucket_bytes = 64 << 10, .budget_buckets = 8, .progress_thread = progress_thread};
}

Transfer* CompileJob(Session* session, int tensors) {
  return session->Compile(StreamJobSpec(tensors)).value();
}

// How buckets are carried, and whether a thread drives the session.
using Case = std::tuple<FakeTransport, bool>;

std::string NameOfCase(const Case& test_case) {
  const auto [transport, progress_thread] = test_case;
  return absl::StrCat(NameOf(transport), progress_thread ? "WithThread" : "");
}

class CudaStreamEventsTest : public testing::TestWithParam<Case> {
 protected:
  // Each rank's body, with an open session and a compiled transfer.
  void RunBoth(const StreamJobOptions& job,
               const std::function<void(Rank&, Session*, Transfer*)>& body) {
    const auto [transport, progress_thread] = GetParam();
    RunRanksOnFakeGpus(2, 2, transport, [&, threads = progress_thread](Rank& self) {
      const auto session = OpenSession(self, FewSlots(threads));
      Transfer* const transfer = CompileJob(session.get(), job.tensors);
      body(self, session.get(), transfer);
      EXPECT_TRUE(session->Close().ok());
    });
  }

  void RunTwice(const StreamJobOptions& options) {
    RunBoth(options, [&](Rank& self, Session* session, Transfer* transfer) {
      StreamJob job(self.rank, options);
      for (int round = 1; round <= 2; ++round) {
        ASSERT_TRUE(job.Start(session, transfer, round).ok());
        const absl::Status status = Complete(session, {&job});
        ASSERT_TRUE(status.ok()) << status;
        EXPECT_EQ(job.done(), options.tensors);
        EXPECT_EQ(job.CountWrong(), 0);
      }
    });
  }
};

TEST_P(CudaStreamEventsTest, WorkAfterTensorDoneFindsTheTensor) { RunTwice({.tensors = 60}); }

TEST_P(CudaStreamEventsTest, MemoryIsTouchedAfterItsFormerOwner) {
  RunTwice({.given = Given::kAsked});
}

// The session writes pinned memory itself, and lets the network write it.
TEST_P(CudaStreamEventsTest, HostMemoryIsTouchedAfterItsFormerOwner) {
  RunTwice({.given = Given::kAsked, .dst_kind = DeviceKind::kCudaHost});
}

// More windows than a run keeps fences for.
TEST_P(CudaStreamEventsTest, MemoryMayComeAheadAndEventsNeedNotBeTaken) {
  const StreamJobOptions options = {.given = Given::kAhead};
  RunBoth(options, [&](Rank& self, Session* session, Transfer* transfer) {
    StreamJob job(self.rank, options);
    ASSERT_TRUE(job.Start(session, transfer, 1).ok());
    ASSERT_EQ(job.run().Wait(), absl::OkStatus());
    job.ConsumeRest();
    EXPECT_EQ(job.done(), options.tensors);
    EXPECT_EQ(job.CountWrong(), 0);
  });
}

// Of one stream, of several, and of the default one.
TEST_P(CudaStreamEventsTest, RunsBesideEachOther) {
  const std::vector<StreamKind> kinds = {StreamKind::kOwn, StreamKind::kDefault,
                                         StreamKind::kBlocking};
  const StreamJobOptions options = {.tensors = 12};
  RunBoth(options, [&](Rank& self, Session* session, Transfer* transfer) {
    std::vector<std::unique_ptr<StreamJob>> jobs;
    std::vector<StreamJob*> all;
    for (size_t i = 0; i < kinds.size(); ++i) {
      StreamJobOptions own = options;
      own.stream = kinds[i];
      own.given = i == 1 ? Given::kAsked : Given::kAtStart;
      jobs.push_back(std::make_unique<StreamJob>(self.rank, own));
      all.push_back(jobs.back().get());
    }
    for (int round = 1; round <= 2; ++round) {
      for (size_t i = 0; i < jobs.size(); ++i) {
        ASSERT_TRUE(jobs[i]->Start(session, transfer, 10 * round + static_cast<int>(i)).ok());
      }
      ASSERT_EQ(Complete(session, all), absl::OkStatus());
      for (const auto& job : jobs) {
        EXPECT_EQ(job->done(), options.tensors);
        EXPECT_EQ(job->CountWrong(), 0);
      }
    }
  });
}

// Both ranks give up while one window lacks its memory.
TEST_P(CudaStreamEventsTest, CancelKeepsWhatWasDone) {
  const StreamJobOptions options = {.tensors = 12, .given = Given::kAsked};
  RunBoth(options, [&](Rank& self, Session* session, Transfer* transfer) {
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
      EXPECT_LT(job.done(), options.tensors);
      EXPECT_EQ(job.CountWrong(), 0);
    }
  });
}

// However many windows there are.
TEST_P(CudaStreamEventsTest, FencesAreUsedAgain) {
  constexpr int kRounds = 6;
  const StreamJobOptions options = {.given = Given::kAsked};
  RunBoth(options, [&](Rank& self, Session* session, Transfer* transfer) {
    StreamJob job(self.rank, options);
    self.meet();
    const int64_t before = FakeCudaCalls("cudaEventCreateWithFlags");
    self.meet();
    for (int round = 1; round <= kRounds; ++round) {
      ASSERT_TRUE(job.Start(session, transfer, round).ok());
      ASSERT_TRUE(Complete(session, {&job}).ok());
      EXPECT_EQ(job.CountWrong(), 0);
    }
    self.meet();
    // Both ranks' together, for 2 x 6 x 24 windows. Up to 32 a rank are the device's, for its first
    // batches of nothing.
    EXPECT_LE(FakeCudaCalls("cudaEventCreateWithFlags") - before, 2 * (16 + 32));
    self.meet();
  });
}

// Without CUDA IPC, whose offers to a rank that has failed end with the session's timeout.
class CudaStreamFailureTest : public CudaStreamEventsTest {};

// Whatever call fails, on one rank: an error on both, and nobody waits for ever.
TEST_P(CudaStreamFailureTest, CallsThatFail) {
  StreamJobOptions options = {.tensors = 9};
  const auto [transport, progress_thread] = GetParam();
  int failures = 0;
  for (const std::string function :
       {"cudaStreamWaitEvent", "cudaEventRecord", "cudaEventQuery", "cudaEventCreateWithFlags"}) {
    for (int nth = 1; nth <= 33; nth += 4) {
      options.given = nth % 8 == 1 ? Given::kAsked : Given::kAtStart;
      RunRanksOnFakeGpus(2, 2, transport, [&, threads = progress_thread](Rank& self) {
        SessionOptions few = FewSlots(threads);
        few.timeout = absl::Minutes(2);
        const auto session = OpenSession(self, few);
        Transfer* const transfer = CompileJob(session.get(), options.tensors);
        StreamJob job(self.rank, options);
        self.meet();
        if (self.rank == 0) FakeCudaFailAt(function, nth, cudaErrorLaunchOutOfResources, 0);
        self.meet();
        job.AllowRefusal();
        const absl::Status started = job.Start(session.get(), transfer, 1);
        const absl::Status status = started.ok() ? Complete(session.get(), {&job}) : started;
        self.meet();
        if (FakeCudaFailures() == 0) {
          EXPECT_TRUE(status.ok()) << function << " " << nth << ": " << status;
          EXPECT_EQ(job.CountWrong(), 0);
        } else if (self.rank == 0) {
          ++failures;
        }
        self.meet();
        if (self.rank == 0) FakeCudaFailNoMore();
        // A call that failed at last is told by the first Close.
        if (!session->Close().ok()) {
          EXPECT_TRUE(session->Close().ok());
        }
      });
      EXPECT_THAT(FakeCudaCheckClean(), IsEmpty()) << function << " " << nth;
      ASSERT_FALSE(HasFailure());
    }
  }
  EXPECT_GT(failures, 12);
}

INSTANTIATE_TEST_SUITE_P(Fakes, CudaStreamEventsTest,
                         testing::Combine(FakeTransports(), testing::Bool()),
                         [](const auto& test) { return NameOfCase(test.param); });

INSTANTIATE_TEST_SUITE_P(Fakes, CudaStreamFailureTest,
                         testing::Combine(testing::Values(FakeTransport::kMessages,
                                                          FakeTransport::kNccl),
                                          testing::Bool()),
                         [](const auto& test) { return NameOfCase(test.param); });

// The other rank has not started the run, and NCCL's kernel waits for it.
TEST(CudaUntakenEventsTest, HoldNothingUp) {
  StreamJobOptions options;
  RunRanksOnFakeGpus(2, 2, FakeTransport::kNccl, [&](Rank& self) {
    const auto session = OpenSession(self, FewSlots());
    Transfer* const transfer = CompileJob(session.get(), options.tensors);
    StreamJob job(self.rank, options);
    ASSERT_TRUE(job.Start(session.get(), transfer, 1).ok());
    ASSERT_TRUE(Complete(session.get(), {&job}).ok());  // views have been compared
    job.Synchronize();
    self.meet();
    if (self.rank == 0) {
      const int64_t calls = FakeNcclCalls("ncclGroupEnd");
      ASSERT_TRUE(job.Start(session.get(), transfer, 2).ok());
      while (FakeNcclCalls("ncclGroupEnd") == calls) ASSERT_TRUE(session->Poll().ok());
      for (int i = 0; i < 100; ++i) ASSERT_TRUE(session->Poll().ok());
      job.Synchronize();
    }
    self.meet();
    if (self.rank == 1) {
      ASSERT_TRUE(job.Start(session.get(), transfer, 2).ok());
    }
    ASSERT_TRUE(Complete(session.get(), {&job}).ok());
    EXPECT_EQ(job.done(), options.tensors);
    EXPECT_EQ(job.CountWrong(), 0);
    EXPECT_TRUE(session->Close().ok());
  });
}

}  // namespace
}  // namespace sluice::session_test
