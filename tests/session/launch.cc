// Many runs at once, from one rank's side.
#include "session/launch.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "oracle/random_layout.h"
#include "session/job.h"

namespace sluice::session_test {
namespace {

// A call that all ranks make in one order.
struct Call {
  bool cancels = false;
  size_t what = 0;  // the transfer to start, or the run to cancel, from 1
};

std::vector<Call> MakeCalls(const RandomJob& job, const Schedule& schedule) {
  oracle::Dice dice(schedule.seed);
  std::vector<Call> calls;
  for (int i = 1; i <= schedule.runs; ++i) {
    const int64_t last = static_cast<int64_t>(job.specs.size()) - 1;
    calls.push_back({false, static_cast<size_t>(dice.Between(0, last))});
  }
  for (int run = 1; run <= schedule.runs; ++run) {
    if (!dice.Chance(schedule.cancel_percent)) continue;
    // Somewhere behind its start.
    size_t at = 0;
    for (int starts = 0; starts < run; ++at) starts += calls[at].cancels ? 0 : 1;
    const int64_t room = std::min<int64_t>(6, static_cast<int64_t>(calls.size() - at));
    at += static_cast<size_t>(dice.Between(0, room));
    calls.insert(calls.begin() + static_cast<ptrdiff_t>(at), {true, static_cast<size_t>(run)});
  }
  return calls;
}

// One rank on its way through the calls.
class Pilot {
 public:
  Pilot(Session* session, const std::vector<Transfer*>& transfers, uint64_t seed)
      : session_(session),
        transfers_(transfers),
        seed_(seed),
        dice_(seed * 64 + static_cast<uint64_t>(session->rank())) {}

  void Make(const Call& call) {
    if (call.cancels) {
      const Run run = runs_.at(call.what - 1);
      cancelled_[run] = true;
      EXPECT_EQ(run.Cancel(), absl::OkStatus());
      EXPECT_EQ(run.Cancel().code(), absl::StatusCode::kFailedPrecondition);
      return;
    }
    const auto number = static_cast<int64_t>(runs_.size()) + 1;
    while (!in_air_.empty() &&
           number - in_air_.begin()->first.number() >= Session::kMaxRunsInFlight) {
      LandOne(in_air_.begin()->first);
    }
    const auto round = static_cast<uint64_t>(number);
    Flight flight = Launch(session_, transfers_[call.what], round, seed_ + round);
    ASSERT_EQ(flight.run.number(), number);
    runs_.push_back(flight.run);
    in_air_.emplace(flight.run, std::move(flight));
  }

  int cut_short() const { return cut_short_; }

  // Some of: polls, or waiting for any run.
  void Linger() {
    switch (dice_.Between(0, 4)) {
      case 0:
        for (int64_t polls = dice_.Between(1, 30); polls > 0; --polls) {
          EXPECT_TRUE(session_->Poll().ok());
        }
        break;
      case 1:
        if (!in_air_.empty()) LandAny();
        break;
      default:
        break;
    }
  }

  void LandAll() {
    while (!in_air_.empty() && !testing::Test::HasFailure()) LandAny();
  }

 private:
  void LandAny() {
    auto at = in_air_.begin();
    std::advance(at, dice_.Between(0, static_cast<int64_t>(in_air_.size()) - 1));
    LandOne(at->first);
  }

  void LandOne(Run run) {
    const Flight& flight = in_air_.at(run);
    const absl::Status status = run.Wait();
    if (status.ok()) {
      EXPECT_EQ(flight.memory.Check(flight.round), "") << "run " << run.number();
    } else {
      EXPECT_EQ(status.code(), absl::StatusCode::kCancelled) << status;
      EXPECT_TRUE(cancelled_[run]) << status;
      EXPECT_EQ(flight.memory.CheckSources(flight.round), "") << "run " << run.number();
      ++cut_short_;
    }
    landed_.push_back(std::move(in_air_.at(run)));
    in_air_.erase(run);
  }

  Session* const session_;
  const std::vector<Transfer*>& transfers_;
  const uint64_t seed_;
  oracle::Dice dice_;
  std::vector<Run> runs_;  // in the order of Start
  int cut_short_ = 0;
  std::map<Run, Flight> in_air_;
  // Freeing memory of a GPU waits for all that it does: for later runs, too, and so for other
  // ranks.
  std::vector<Flight> landed_;
  std::map<Run, bool> cancelled_;
};

}  // namespace

Flight Launch(Session* session, Transfer* transfer, uint64_t round,
              std::optional<uint64_t> style_seed, const StartOptions& options) {
  Flight flight{
      Run(), round,
      RankMemory(transfer->spec(), session->rank(), style_seed, session->options().accelerator)};
  flight.memory.Prepare(round);
  const auto run = session->Start(transfer, flight.memory.src(), flight.memory.dst(), options);
  EXPECT_TRUE(run.ok()) << run.status();
  flight.run = run.value_or(Run());
  return flight;
}

void Land(Session* session, const Flight& flight) {
  EXPECT_EQ(flight.run.Wait(), absl::OkStatus());
  EXPECT_EQ(flight.memory.Check(flight.round), "")
      << "rank " << session->rank() << " run " << flight.run.number();
}

int RunSchedule(Rank& self, const RandomJob& job, const Schedule& schedule) {
  const std::unique_ptr<Session> session = OpenSession(self, job.options);
  const std::vector<Transfer*> transfers = CompileAll(session.get(), job.specs);
  session->ResetCounters();
  Pilot pilot(session.get(), transfers, schedule.seed);
  for (const Call& call : MakeCalls(job, schedule)) {
    pilot.Make(call);
    pilot.Linger();
    if (testing::Test::HasFailure()) return 0;
  }
  pilot.LandAll();
  ExpectWithinLimits(*session);
  // What was cancelled has left nothing behind.
  for (size_t t = 0; t < transfers.size(); ++t) {
    Land(session.get(), Launch(session.get(), transfers[t], 100 + t));
  }
  EXPECT_EQ(session->Close(), absl::OkStatus());
  return pilot.cut_short();
}

}  // namespace sluice::session_test
