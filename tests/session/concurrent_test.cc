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

// AllToAll in each of the priority classes.
std::vector<Transfer*> CompileClasses(Session* session, int size) {
  std::vector<Transfer*> transfers;
  for (int priority_class = 0; priority_class < kPriorityClasses; ++priority_class) {
    TransferSpec spec = AllToAll(size, 4096);
    spec.priority_class = priority_class;
    transfers.push_back(session->Compile(spec).value());
  }
  return transfers;
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

TEST(ConcurrentTest, ClassesStartedTogetherAndWaitedForBackwards) {
  for (const int64_t slots : {int64_t{1}, int64_t{2}, int64_t{5}, kNoLimit}) {
    RunSessions(4, Narrow(slots), [](Rank&, Session* session) {
      const std::vector<Transfer*> transfers = CompileClasses(session, 4);
      for (uint64_t round = 1; round <= 3; ++round) {
        std::vector<Flight> flights;
        for (size_t t = transfers.size(); t-- > 0;) {
          flights.push_back(Launch(session, transfers[t], round));
          // The same transfer once more, into other memory.
          flights.push_back(Launch(session, transfers[t], round + 50, 7));
        }
        for (size_t i = flights.size(); i-- > 0;) Land(session, flights[i]);
      }
      ExpectWithinLimits(*session);
    });
  }
}

TEST(ConcurrentTest, ARankMayBeARunAhead) {
  for (const bool first_runs : {true, false}) {
    RunSessions(3, Narrow(1), [first_runs](Rank& self, Session* session) {
      Bound bound = CompileBound(session, AllToAll(3, 4096));
      if (!first_runs) RunOnce(session, &bound, 9);
      Flight first = Launch(session, bound.transfer, 1);
      if (self.rank == 1) {
        // By now it has all that it can of both.
        const Flight second = Launch(session, bound.transfer, 2);
        for (int i = 0; i < 200; ++i) ASSERT_TRUE(session->Poll().ok());
        Land(session, second);
        Land(session, first);
      } else {
        Land(session, first);
        Land(session, Launch(session, bound.transfer, 2));
      }
    });
  }
}

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

TEST(ConcurrentTest, WrongViewsOfARunAheadPoison) {
  RunRanks(2, [](Rank& self) {
    const auto session = OpenSession(self, Narrow(2));
    Bound bound = CompileBound(session.get(), AllToAll(2, 4096));
    const Flight first = Launch(session.get(), bound.transfer, 1);
    std::vector<TensorView> dst = bound.memory.dst();
    if (self.rank == 1) dst[0].dtype = DType::kI64;
    const auto second = session->Start(bound.transfer, bound.memory.src(), dst);
    absl::Status status = second.status();
    if (second.ok()) status = second->Wait();
    EXPECT_THAT(status, Fails(absl::StatusCode::kInvalidArgument, "view has dtype i64"));
    self.meet();
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

TEST(ConcurrentTest, AnUrgentRunOvertakes) {
  RunSessions(4, Narrow(2), [](Rank& self, Session* session) {
    TransferSpec lazy = AllToAll(4, 200 << 10);
    lazy.priority_class = 1;
    Transfer* const slow = session->Compile(lazy).value();
    Transfer* const fast = session->Compile(AllToAll(4, 4096)).value();
    for (uint64_t round = 1; round <= 2; ++round) {
      self.meet();
      session->ResetCounters();
      const Flight early = Launch(session, slow, round);
      const Flight late = Launch(session, fast, round);
      self.meet();
      Land(session, late);
      const int64_t finished = session->counters().buckets_finished;
      EXPECT_LT(finished - fast->stats().buckets, slow->stats().buckets / 2) << "round " << round;
      Land(session, early);
      EXPECT_EQ(session->counters().buckets_finished,
                slow->stats().buckets + fast->stats().buckets);
    }
  });
}

}  // namespace
}  // namespace sluice::session_test
