// Whole jobs, seen from one rank.
#include "session/job.h"

#include <algorithm>
#include <vector>

#include "gtest/gtest.h"
#include "session/base/backoff.h"
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
  return std::move(session).value();
}

Bound CompileBound(Session* session, const TransferSpec& spec, std::optional<uint64_t> style_seed) {
  return {session->Compile(spec).value(),
          RankMemory(spec, session->rank(), style_seed, session->options().accelerator)};
}

std::vector<Transfer*> CompileAll(Session* session, absl::Span<const TransferSpec> specs) {
  std::vector<Transfer*> transfers;
  transfers.reserve(specs.size());
  for (const TransferSpec& spec : specs) transfers.push_back(session->Compile(spec).value());
  return transfers;
}

void RunSessions(int size, const SessionOptions& options,
                 const std::function<void(Rank&, Session*)>& body) {
  RunRanks(size, [&](Rank& self) {
    const auto session = OpenSession(self, options);
    body(self, session.get());
    if (testing::Test::HasFatalFailure()) return;
    EXPECT_EQ(session->Close(), absl::OkStatus());
  });
}

Run StartRun(Session* session, Bound* bound, uint64_t round, const StartOptions& options) {
  bound->memory.Prepare(round);
  return session->Start(bound->transfer, bound->memory.src(), bound->memory.dst(), options).value();
}

Run RunOnce(Session* session, Bound* bound, uint64_t round) {
  const Run run = StartRun(session, bound, round);
  const absl::Status status = run.Wait();
  EXPECT_TRUE(status.ok()) << status;
  if (!status.ok()) return run;
  EXPECT_TRUE(run.IsDone());
  EXPECT_EQ(bound->memory.Check(round), "") << "rank " << session->rank() << " round " << round;
  return run;
}

void RunWithLateRank(Rank& self, Session* session, Bound* bound, uint64_t round, int late) {
  if (self.rank == late) self.meet();
  const Run run = StartRun(session, bound, round);
  if (self.rank != late) {
    for (int i = 0; i < kPollsAlone; ++i) ASSERT_TRUE(session->Poll().ok());
    self.meet();
  }
  ASSERT_EQ(run.Wait(), absl::OkStatus());
  EXPECT_EQ(bound->memory.Check(round), "") << "rank " << session->rank() << " round " << round;
}

absl::Status AwaitError(Session* session) {
  absl::Status status;
  for (Backoff idle; status.ok(); idle.Pause()) status = session->Poll();
  return status;
}

void ExpectWithinLimits(const Session& session) {
  const SessionCounters counters = session.counters();
  if (session.slots() == 0) return;
  EXPECT_LE(counters.buckets_peak, session.slots());
  EXPECT_LE(counters.staging_bytes_peak, session.slots() * session.slot_bytes());
}

void RunJob(Rank& self, const RandomJob& job, uint64_t seed) {
  const std::unique_ptr<Session> session = OpenSession(self, job.options);
  std::vector<Bound> bounds;
  for (const TransferSpec& spec : job.specs) {
    bounds.push_back(CompileBound(session.get(), spec, seed));
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
  EXPECT_EQ(session->Close(), absl::OkStatus());
}

void RunThroughOneSlot(Rank& self, const TransferSpec& spec) {
  const std::unique_ptr<Session> session =
      OpenSession(self, {.bucket_bytes = 64 << 10, .max_in_flight = 1, .budget_buckets = 1});
  Bound bound = CompileBound(session.get(), spec);
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
