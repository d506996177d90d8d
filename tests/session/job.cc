// Whole jobs, seen from one rank.
#include "session/job.h"

#include <algorithm>
#include <vector>

#include "gtest/gtest.h"
#include "sluice/testing.h"

namespace sluice::session_test {
namespace {

// Enough for a rank to do all that it can without another one.
constexpr int kPollsAlone = 200;

}  // namespace

std::unique_ptr<Session> OpenSession(Rank& self, SessionOptions options) {
  options.accelerator = self.accelerator;
  options.transport = self.transport;
  options.direct = self.direct;
  // Filling memory may take a rank longer than others wait for its call.
  if (options.timeout == SessionOptions().timeout) options.timeout = absl::Minutes(3);
  auto session = self.naive ? CreateNaiveSession(std::move(self.fabric), options)
                            : Session::Create(std::move(self.fabric), options);
  EXPECT_TRUE(session.ok()) << session.status();
  return session.ok() ? *std::move(session) : nullptr;
}

Bound CompileBound(Session* session, const TransferSpec& spec, std::optional<uint64_t> style_seed) {
  const auto transfer = session->Compile(spec);
  EXPECT_TRUE(transfer.ok()) << transfer.status();
  return {transfer.ok() ? *transfer : nullptr,
          RankMemory(spec, session->rank(), style_seed, session->options().accelerator)};
}

std::vector<Transfer*> CompileAll(Session* session, absl::Span<const TransferSpec> specs) {
  std::vector<Transfer*> transfers;
  for (const TransferSpec& spec : specs) {
    const auto transfer = session->Compile(spec);
    EXPECT_TRUE(transfer.ok()) << transfer.status();
    if (!transfer.ok()) break;
    transfers.push_back(*transfer);
  }
  return transfers;
}

Run RunOnce(Session* session, Bound* bound, uint64_t round) {
  bound->memory.Prepare(round);
  const auto run = session->Start(bound->transfer, bound->memory.src(), bound->memory.dst());
  EXPECT_TRUE(run.ok()) << run.status();
  if (!run.ok()) return Run();
  const absl::Status status = run->Wait();
  EXPECT_TRUE(status.ok()) << status;
  if (!status.ok()) return *run;
  EXPECT_TRUE(run->IsDone());
  EXPECT_EQ(bound->memory.Check(round), "") << "rank " << session->rank() << " round " << round;
  return *run;
}

void RunWithLateRank(Rank& self, Session* session, Bound* bound, uint64_t round, int late) {
  bound->memory.Prepare(round);
  if (self.rank == late) self.meet();
  const auto run = session->Start(bound->transfer, bound->memory.src(), bound->memory.dst());
  ASSERT_TRUE(run.ok()) << run.status();
  if (self.rank != late) {
    for (int i = 0; i < kPollsAlone; ++i) ASSERT_TRUE(session->Poll().ok());
    self.meet();
  }
  const absl::Status status = run->Wait();
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(bound->memory.Check(round), "") << "rank " << session->rank() << " round " << round;
}

void ExpectWithinLimits(const Session& session) {
  const SessionCounters counters = session.counters();
  if (session.slots() == 0) return;
  EXPECT_LE(counters.buckets_peak, session.slots());
  EXPECT_LE(counters.staging_bytes_peak, session.slots() * session.slot_bytes());
}

void RunJob(Rank& self, const RandomJob& job, uint64_t seed) {
  const std::unique_ptr<Session> session = OpenSession(self, job.options);
  if (session == nullptr) return;
  std::vector<Bound> bounds;
  for (const TransferSpec& spec : job.specs) {
    bounds.push_back(CompileBound(session.get(), spec, seed));
    if (bounds.back().transfer == nullptr) return;
  }
  session->ResetCounters();
  int64_t buckets = 0;
  for (uint64_t round = 0; round < 3; ++round) {
    for (Bound& bound : bounds) {
      RunOnce(session.get(), &bound, round);
      if (testing::Test::HasFatalFailure()) return;
      buckets += bound.transfer->stats().buckets;
    }
  }
  EXPECT_EQ(session->counters().buckets_finished, buckets);
  ExpectWithinLimits(*session);
  const absl::Status closed = session->Close();
  EXPECT_TRUE(closed.ok()) << closed;
}

void RunThroughOneSlot(Rank& self, const TransferSpec& spec) {
  SessionOptions options;
  options.bucket_bytes = 64 << 10;
  options.max_in_flight = 1;
  options.budget_buckets = 1;
  const std::unique_ptr<Session> session = OpenSession(self, options);
  if (session == nullptr) return;
  Bound bound = CompileBound(session.get(), spec);
  if (bound.transfer == nullptr) return;
  uint64_t round = 0;
  for (int late = -1; late < std::min(self.size, 3); ++late, ++round) {
    if (late < 0) {
      RunOnce(session.get(), &bound, round);
    } else {
      RunWithLateRank(self, session.get(), &bound, round, late);
    }
    if (testing::Test::HasFatalFailure()) return;
  }
  ExpectWithinLimits(*session);
  EXPECT_EQ(session->counters().buckets_peak, bound.transfer->stats().buckets > 0 ? 1 : 0);
  EXPECT_TRUE(session->Close().ok());
}

}  // namespace sluice::session_test
