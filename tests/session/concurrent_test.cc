// Several runs in flight on one session: verified together, in any order, within one budget.
#include <atomic>
#include <cstdint>
#include <memory>
#include <ostream>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "oracle/sampled.h"
#include "session/job.h"
#include "session/launch.h"

namespace sluice::session_test {
namespace {

using testing::HasSubstr;

SessionOptions Narrow(int64_t slots) {
  SessionOptions options;
  options.bucket_bytes = 1024;
  options.max_in_flight = slots == 1 ? 1 : 2;
  options.budget_buckets = slots;
  return options;
}

// AllToAll in each of the priority classes.
std::vector<Transfer*> CompileClasses(Session* session, int size) {
  std::vector<Transfer*> transfers;
  for (int priority_class = 0; priority_class < kPriorityClasses; ++priority_class) {
    TransferSpec spec = AllToAll(size, 4096);
    spec.priority_class = priority_class;
    const auto transfer = session->Compile(spec);
    EXPECT_TRUE(transfer.ok()) << transfer.status();
    if (transfer.ok()) transfers.push_back(*transfer);
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
    RunRanks(4, [slots](Rank& self) {
      const auto session = OpenSession(self, Narrow(slots));
      ASSERT_NE(session, nullptr);
      const std::vector<Transfer*> transfers = CompileClasses(session.get(), 4);
      for (uint64_t round = 1; round <= 3; ++round) {
        std::vector<Flight> flights;
        for (size_t t = transfers.size(); t-- > 0;) {
          flights.push_back(Launch(session.get(), transfers[t], round));
          // The same transfer once more, into other memory.
          flights.push_back(Launch(session.get(), transfers[t], round + 50, 7));
        }
        for (size_t i = flights.size(); i-- > 0;) Land(session.get(), flights[i]);
      }
      ExpectWithinLimits(*session);
      EXPECT_TRUE(session->Close().ok());
    });
  }
}

TEST(ConcurrentTest, ARankMayBeARunAhead) {
  for (const bool first_runs : {true, false}) {
    RunRanks(3, [first_runs](Rank& self) {
      const auto session = OpenSession(self, Narrow(1));
      ASSERT_NE(session, nullptr);
      Bound bound = CompileBound(session.get(), AllToAll(3, 4096));
      ASSERT_NE(bound.transfer, nullptr);
      if (!first_runs) RunOnce(session.get(), &bound, 9);
      Flight first = Launch(session.get(), bound.transfer, 1);
      if (self.rank == 1) {
        // By now it has all that it can of both.
        const Flight second = Launch(session.get(), bound.transfer, 2);
        for (int i = 0; i < 200; ++i) ASSERT_TRUE(session->Poll().ok());
        Land(session.get(), second);
        Land(session.get(), first);
      } else {
        Land(session.get(), first);
        Land(session.get(), Launch(session.get(), bound.transfer, 2));
      }
      EXPECT_TRUE(session->Close().ok());
    });
  }
}

TEST(ConcurrentTest, AnAheadRankLearnsThatTheFirstRunWasRefused) {
  RunRanks(3, [](Rank& self) {
    const auto session = OpenSession(self, Narrow(2));
    ASSERT_NE(session, nullptr);
    Bound bound = CompileBound(session.get(), AllToAll(3, 4096));
    ASSERT_NE(bound.transfer, nullptr);
    bound.memory.Prepare(1);
    std::vector<TensorView> dst = bound.memory.dst();
    if (self.rank == 2) dst[0].dtype = DType::kI64;
    const auto refused = session->Start(bound.transfer, bound.memory.src(), dst);
    ASSERT_TRUE(refused.ok());
    const auto expect_refused = [&] {
      EXPECT_EQ(refused->Wait().code(), absl::StatusCode::kInvalidArgument);
      EXPECT_TRUE(bound.memory.Untouched(1));
    };
    if (self.rank != 1) expect_refused();
    const Flight second = Launch(session.get(), bound.transfer, 2);
    const Flight third = Launch(session.get(), bound.transfer, 3);
    Land(session.get(), third);
    Land(session.get(), second);
    expect_refused();
    EXPECT_TRUE(session->Close().ok());
  });
}

TEST(ConcurrentTest, WrongViewsOfARunAheadPoison) {
  RunRanks(2, [](Rank& self) {
    const auto session = OpenSession(self, Narrow(2));
    ASSERT_NE(session, nullptr);
    Bound bound = CompileBound(session.get(), AllToAll(2, 4096));
    ASSERT_NE(bound.transfer, nullptr);
    const Flight first = Launch(session.get(), bound.transfer, 1);
    std::vector<TensorView> dst = bound.memory.dst();
    if (self.rank == 1) dst[0].dtype = DType::kI64;
    const auto second = session->Start(bound.transfer, bound.memory.src(), dst);
    absl::Status status = second.status();
    if (second.ok()) status = second->Wait();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("view has dtype i64"));
    self.meet();
  });
}

TEST(ConcurrentTest, AsManyRunsAsMayBeInFlightAndNoMore) {
  RunRanks(3, [](Rank& self) {
    const auto session = OpenSession(self, Narrow(1));
    ASSERT_NE(session, nullptr);
    Bound bound = CompileBound(session.get(), AllToAll(3, 2048));
    ASSERT_NE(bound.transfer, nullptr);
    RunOnce(session.get(), &bound, 1);
    for (int turn = 0; turn < 3; ++turn) {
      std::vector<Flight> flights;
      if (self.rank == 2) self.meet();  // the others go as far as they can
      for (int64_t i = 0; i < Session::kMaxRunsInFlight; ++i) {
        flights.push_back(Launch(session.get(), bound.transfer, static_cast<uint64_t>(i)));
      }
      if (self.rank != 2) {
        for (int i = 0; i < 100; ++i) ASSERT_TRUE(session->Poll().ok());
        const auto more = session->Start(bound.transfer, bound.memory.src(), bound.memory.dst());
        EXPECT_EQ(more.status().code(), absl::StatusCode::kFailedPrecondition);
        EXPECT_THAT(std::string(more.status().message()), HasSubstr("16 runs are in flight"));
        self.meet();
      }
      for (const Flight& flight : flights) Land(session.get(), flight);
    }
    EXPECT_TRUE(session->Close().ok());
  });
}

TEST(ConcurrentTest, AnUrgentRunOvertakes) {
  RunRanks(4, [](Rank& self) {
    const auto session = OpenSession(self, Narrow(2));
    ASSERT_NE(session, nullptr);
    TransferSpec lazy = AllToAll(4, 200 << 10);
    lazy.priority_class = 1;
    const auto slow = session->Compile(lazy);
    const auto fast = session->Compile(AllToAll(4, 4096));
    ASSERT_TRUE(slow.ok() && fast.ok());
    for (uint64_t round = 1; round <= 2; ++round) {
      self.meet();
      session->ResetCounters();
      const Flight early = Launch(session.get(), *slow, round);
      const Flight late = Launch(session.get(), *fast, round);
      self.meet();
      Land(session.get(), late);
      const int64_t finished = session->counters().buckets_finished;
      EXPECT_LT(finished - (*fast)->stats().buckets, (*slow)->stats().buckets / 2)
          << "round " << round;
      Land(session.get(), early);
      EXPECT_EQ(session->counters().buckets_finished,
                (*slow)->stats().buckets + (*fast)->stats().buckets);
    }
    EXPECT_TRUE(session->Close().ok());
  });
}

}  // namespace
}  // namespace sluice::session_test
