// Cancels by dice.
#include <chrono>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "oracle/random_layout.h"
#include "session/job.h"
#include "session/late_run.h"
#include "session/launch.h"

namespace sluice::session_test {
namespace {

constexpr int kRuns = 10;

struct Started {
  std::unique_ptr<LateRun> late;
  bool is_cancelled = false;  // before the end, by all ranks
};

class Canceller {
 public:
  Canceller(Session* session, std::vector<Transfer*> transfers, uint64_t seed)
      : session_(session),
        transfers_(std::move(transfers)),
        common_(seed),
        own_(seed * 64 + static_cast<uint64_t>(session->rank()) + 1) {}

  void Go() {
    std::vector<Run> to_cancel;
    for (int i = 1; i <= kRuns && !testing::Test::HasFailure(); ++i) {
      const bool is_cancelled = common_.Chance(50);
      const Run run = Start(i, is_cancelled);
      if (is_cancelled) to_cancel.push_back(run);
      Linger();
      while (!to_cancel.empty() && common_.Chance(40)) {
        const size_t which =
            static_cast<size_t>(common_.Between(0, static_cast<int64_t>(to_cancel.size()) - 1));
        Cancel(to_cancel[which]);
        to_cancel.erase(to_cancel.begin() + static_cast<ptrdiff_t>(which));
        Linger();
      }
    }
    for (const Run run : to_cancel) Cancel(run);
    std::vector<LateRun*> all;
    for (auto& [run, started] : runs_) all.push_back(started.late.get());
    Complete(session_, all);
    for (const auto& [run, started] : runs_) Check(run, started);
  }

  int cut_short() const { return cut_short_; }

 private:
  Run Start(int number, bool is_cancelled) {
    const auto last = static_cast<int64_t>(transfers_.size()) - 1;
    Transfer* const transfer = transfers_[static_cast<size_t>(common_.Between(0, last))];
    std::vector<Supplied> when;
    for (size_t t = 0; t < transfer->spec().tensors.size(); ++t) {
      when.push_back(is_cancelled && own_.Chance(25)
                         ? Supplied::kNever
                         : own_.Pick<Supplied>({Supplied::kAtStart, Supplied::kEarly,
                                                Supplied::kAsked, Supplied::kHesitant}));
    }
    auto late = std::make_unique<LateRun>(session_, transfer, static_cast<uint64_t>(number), when);
    const Run run = late->run();
    runs_.emplace(run, Started{std::move(late), is_cancelled});
    return run;
  }

  void Cancel(Run run) {
    EXPECT_EQ(run.Cancel(), absl::OkStatus());
    runs_.at(run).late->Cancelled();
  }

  // Some of: polls that take events and supply memory; polls alone; staying away.
  void Linger() {
    switch (own_.Between(0, 3)) {
      case 0:
        for (int64_t polls = own_.Between(1, 60); polls > 0; --polls) {
          EXPECT_TRUE(session_->Poll().ok());
          for (Event event; session_->PollEvent(&event);) runs_.at(event.run).late->Take(event);
          for (auto& [run, started] : runs_) started.late->Supply();
        }
        break;
      case 1:
        for (int64_t polls = own_.Between(1, 60); polls > 0; --polls) {
          EXPECT_TRUE(session_->Poll().ok());
        }
        break;
      case 2:
        std::this_thread::sleep_for(std::chrono::microseconds(own_.Between(0, 3000)));
        break;
      default:
        break;
    }
  }

  void Check(Run run, const Started& started) {
    const absl::Status status = run.Wait();
    if (status.ok()) {
      EXPECT_FALSE(started.late->failed()) << "run " << run.number();
      started.late->ExpectAllDone();
      return;
    }
    ++cut_short_;
    EXPECT_TRUE(started.is_cancelled) << status;
    EXPECT_EQ(status.code(), absl::StatusCode::kCancelled) << status;
    EXPECT_EQ(started.late->failure().code(), absl::StatusCode::kCancelled);
  }

  Session* const session_;
  const std::vector<Transfer*> transfers_;
  oracle::Dice common_;
  oracle::Dice own_;
  std::map<Run, Started> runs_;
  int cut_short_ = 0;
};

}  // namespace

int RunCancelled(Rank& self, const RandomJob& job, uint64_t seed) {
  const std::unique_ptr<Session> session = OpenSession(self, job.options);
  const std::vector<Transfer*> transfers = CompileAll(session.get(), job.specs);
  if (transfers.size() != job.specs.size()) return 0;
  session->ResetCounters();
  Canceller canceller(session.get(), transfers, seed);
  canceller.Go();
  if (testing::Test::HasFailure()) return 0;
  ExpectWithinLimits(*session);
  // What was cancelled has left nothing behind.
  for (uint64_t round = 20; round < 24; ++round) {
    for (Transfer* const transfer : transfers)
      Land(session.get(), Launch(session.get(), transfer, round));
  }
  EXPECT_EQ(session->Close(), absl::OkStatus());
  return canceller.cut_short();
}

}  // namespace sluice::session_test
