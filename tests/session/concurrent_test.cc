// Several runs in flight on one session: verified together, in any order, within one budget.
#include <atomic>
#include <cstdint>
#include <ostream>
#include <vector>

#include "gmock/gmock.h"
#include "main/fails.h"
#include "oracle/sampled.h"
#include "session/job.h"
#include "session/launch.h"

namespace sluice::session_test {
namespace {

SessionOptions Narrow(int64_t slots) {
  return {.bucket_bytes = 1024, .max_in_flight = slots == 1 ? 1 : 2, .budget_buckets = slots};
}

// How many ranks; whether every second one has a progress thread, or none.
struct Crew {
  int size;
  bool threads;
};

void PrintTo(const Crew& crew, std::ostream* out) {
  *out << crew.size << (crew.threads ? "Threads" : "");
}

class RandomScheduleTest : public testing::TestWithParam<Crew> {
 protected:
  static RandomJob MakeJob(uint64_t seed) {
    return MakeRandomJob(seed * 100 + static_cast<uint64_t>(GetParam().size), GetParam().size);
  }
  static std::vector<uint64_t> Seeds(int most) {
    return oracle::Seeds(GetParam().threads ? most / 2 : most);
  }
  static int RunOn(Rank& self, RandomJob job, const Schedule& schedule) {
    job.options.progress_thread = GetParam().threads && self.rank % 2 == 0;
    return RunSchedule(self, job, schedule);
  }
};

TEST_P(RandomScheduleTest, EveryRunIsRight) {
  const int size = GetParam().size;
  for (const uint64_t seed : Seeds(24)) {
    const RandomJob job = MakeJob(seed + 5000);
    RunRanks(size, [&](Rank& self) { RunOn(self, job, {.seed = seed}); });
    ASSERT_FALSE(HasFailure()) << "seed " << seed << " with " << size << " ranks";
  }
}

TEST_P(RandomScheduleTest, CancelsLeaveOtherRunsAlone) {
  const int size = GetParam().size;
  std::atomic<int> cut_short = 0;
  // Whether a cancel comes before its run is done is for the threads to say: there are more tries
  // for as long as none did.
  for (size_t tried = 0; tried < Seeds(30).size() || (cut_short == 0 && tried < 500); ++tried) {
    const uint64_t seed = oracle::FirstSeed() + tried;
    const RandomJob job = MakeJob(seed + 3000);
    const Schedule schedule{.seed = seed, .cancel_percent = 40};
    RunRanks(size, [&](Rank& self) { cut_short += RunOn(self, job, schedule); });
    ASSERT_FALSE(HasFailure()) << "seed " << seed << " with " << size << " ranks";
  }
  EXPECT_GT(cut_short, 0);
}

INSTANTIATE_TEST_SUITE_P(Ranks, RandomScheduleTest,
                         testing::Values(Crew{1, false}, Crew{2, false}, Crew{3, false},
                                         Crew{5, false}, Crew{8, false}, Crew{2, true},
                                         Crew{3, true}),
                         testing::PrintToStringParamName());

TEST(ConcurrentTest, AnAheadRankLearnsThatTheFirstRunWasRefused) {
  RunSessions(3, Narrow(2), [](Rank& self, Session* session) {
    Bound bound = CompileBound(session, AllToAll(3, 4096));
    bound.memory.Prepare(1);
    std::vector<TensorView> dst = bound.memory.dst();
    if (self.rank == 2) dst[0].dtype = DType::kI64;
    const auto refused = session->Start(bound.transfer, bound.memory.src(), dst).value();
    const auto expect_refused = [&] {
      EXPECT_EQ(refused.Wait().code(), absl::StatusCode::kInvalidArgument);
      EXPECT_TRUE(bound.memory.Untouched(1));
    };
    if (self.rank != 1) expect_refused();
    const Flight second = Launch(session, bound.transfer, 2);
    const Flight third = Launch(session, bound.transfer, 3);
    Land(session, third);
    Land(session, second);
    expect_refused();
  });
}

TEST(ConcurrentTest, AsManyRunsAsMayBeInFlightAndNoMore) {
  RunSessions(3, Narrow(1), [](Rank& self, Session* session) {
    Bound bound = CompileBound(session, AllToAll(3, 2048));
    RunOnce(session, &bound, 1);
    for (int turn = 0; turn < 3; ++turn) {
      std::vector<Flight> flights;
      if (self.rank == 2) self.meet();  // the others go as far as they can
      for (int64_t i = 0; i < Session::kMaxRunsInFlight; ++i) {
        flights.push_back(Launch(session, bound.transfer, static_cast<uint64_t>(i)));
      }
      if (self.rank != 2) {
        for (int i = 0; i < 100; ++i) ASSERT_TRUE(session->Poll().ok());
        const auto more = session->Start(bound.transfer, bound.memory.src(), bound.memory.dst());
        EXPECT_THAT(more.status(),
                    Fails(absl::StatusCode::kFailedPrecondition, "16 runs are in flight"));
        self.meet();
      }
      for (const Flight& flight : flights) Land(session, flight);
    }
  });
}

}  // namespace
}  // namespace sluice::session_test
