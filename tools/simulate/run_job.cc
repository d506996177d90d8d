// The runs of one job.
#include "simulate/run_job.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "job/exit_codes.h"
#include "report/progress_line.h"
#include "sim/simulation.h"
#include "sluice/status.h"
#include "workload/write_file.h"

namespace sluice::bench {
namespace {

volatile std::sig_atomic_t noted = 0;

void Note(int signal) {
  noted = 1;
  std::signal(signal, SIG_DFL);
}

using Clock = std::chrono::steady_clock;
double SecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// False once the user wants no more of it.
bool ShowProgress(absl::string_view what, int64_t done, int64_t all, const Interrupt& interrupt,
                  ProgressLine* line) {
  if (line->IsDue()) {
    const double share = static_cast<double>(done) / static_cast<double>(std::max<int64_t>(1, all));
    line->Draw(absl::StrFormat("%s: %d of %d (%.0f%%)", what, done, all, 100 * share));
  }
  return !interrupt.came();
}

// Engines are most of a simulation's memory. A job of many ranks knows fewer buckets ahead, rather
// than taking tens of GiB.
constexpr int64_t kLookAheadBytesMax = int64_t{1} << 30;
constexpr int64_t kBytesPerBucketAhead = 160;  // a record, a channel, an entry in two heaps
constexpr int64_t kLookAheadMin = 64;

int LookAhead(const SimOptions& options, int ranks) {
  const int64_t affordable = kLookAheadBytesMax / kBytesPerBucketAhead / ranks;
  return static_cast<int>(
      std::min<int64_t>(options.look_ahead, std::max(kLookAheadMin, affordable)));
}

// Without a budget there are as many slots as channels can fill.
constexpr int64_t kSlotBytesMax = int64_t{8} << 30;

absl::Status CheckMemory(const sim::JobPlans& plans, int64_t budget) {
  int64_t slots = 0;
  for (int rank = 0; rank < plans.ranks(); ++rank) {
    const int64_t most = plans.plan(rank).peak_buckets_without_budget;
    slots += budget == 0 ? most : std::min(budget, most);
  }
  constexpr int64_t kBytesPerSlot = kBytesPerBucketAhead + 128;  // a live bucket, and its move
  if (slots <= kSlotBytesMax / kBytesPerSlot) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("budget ", budget, ": ", slots, " slots over ", plans.ranks(), " ranks x ",
                   kBytesPerSlot, " bytes = ", slots * kBytesPerSlot, " bytes of engines; at most ",
                   kSlotBytesMax, ". Simulate fewer ranks, or a budget"));
}

// Plans, and what making them took.
struct PlannedJob {
  sim::JobPlans plans;
  double seconds;
  double bytes_per_rank;
};

// Cancelled if the user has had enough.
absl::StatusOr<PlannedJob> PlanJob(sim::Job job, int64_t budget, const SimOptions& options,
                                   const Interrupt& interrupt) {
  job.slots = budget;
  job.relay = options.plan == "relay";
  job.coalesce = !options.no_coalesce;
  const Clock::time_point begin = Clock::now();
  SLUICE_ASSIGN_OR_RETURN(sim::JobPlans plans, [&] {
    ProgressLine line(options.progress);
    const std::string what = absl::StrCat(job.name, ": planned ranks");
    return sim::JobPlans::Make(
        job, [&](int done, int all) { return ShowProgress(what, done, all, interrupt, &line); });
  }());
  const double seconds = SecondsSince(begin);
  const double bytes = static_cast<double>(plans.memory_bytes()) / static_cast<double>(job.ranks);
  absl::FPrintF(stderr, "# %s: %d of %d ranks planned in %.3f s, %.0f bytes per rank\n", job.name,
                plans.distinct_plans(), job.ranks, seconds, bytes);
  return PlannedJob{std::move(plans), seconds, bytes};
}

// As sessions count it: without what lies at its target already.
int64_t PayloadBytes(const sim::JobPlans& plans) {
  int64_t bytes = 0;
  for (int rank = 0; rank < plans.ranks(); ++rank) {
    for (const sim::RankBucket& bucket : plans.plan(rank).buckets) {
      if (bucket.role != Role::kLocal) bytes += bucket.stay_bytes;
    }
  }
  return bytes;
}

absl::Status RunBudget(const std::string& name, const PlannedJob& planned, int64_t budget,
                       const SimOptions& options, const Interrupt& interrupt,
                       std::vector<SimResult>* results) {
  const sim::JobPlans& plans = planned.plans;
  SLUICE_RETURN_IF_ERROR(CheckMemory(plans, budget));
  sim::SimulationOptions simulation;
  simulation.budget_buckets = budget;
  simulation.max_in_flight = plans.max_in_flight();
  simulation.look_ahead = LookAhead(options, plans.ranks());
  simulation.network = options.network;
  simulation.seed = options.seed;
  simulation.start_skew = options.start_skew_us * 1e-6;
  ProgressLine line(options.progress);
  const std::string what = absl::StrCat(name, ", budget ", budget);
  const Clock::time_point begin = Clock::now();
  SLUICE_ASSIGN_OR_RETURN(const sim::SimulationOutcome outcome,
                          sim::Simulate(plans, simulation, [&](int64_t done, int64_t all) {
                            return ShowProgress(what, done, all, interrupt, &line);
                          }));
  SimResult result = Summarize(outcome);
  result.family = name;
  result.budget = budget;
  result.bucket_bytes = plans.bucket_bytes();
  result.max_in_flight = plans.max_in_flight();
  result.look_ahead = simulation.look_ahead;
  result.buckets = plans.buckets();
  result.payload_bytes = PayloadBytes(plans);
  result.plan_seconds = planned.seconds;
  result.distinct_plans = plans.distinct_plans();
  result.plan_bytes_per_rank = planned.bytes_per_rank;
  result.simulate_seconds = SecondsSince(begin);
  results->push_back(result);
  if (outcome.stalled()) {
    absl::FPrintF(stderr, "# %s, budget %d: %d ranks stalled\n%s\n", name, budget,
                  outcome.unfinished_ranks, outcome.stall);
  }
  return absl::OkStatus();
}

}  // namespace

Interrupt::Interrupt() {
  noted = 0;
  before_ = std::signal(SIGINT, Note);
}

Interrupt::~Interrupt() { std::signal(SIGINT, before_); }

bool Interrupt::came() const { return noted != 0; }

absl::Status RunJob(const sim::Job& job, const SimOptions& options, const Interrupt& interrupt,
                    SimReport* report) {
  std::vector<SimResult>& results = report->results;
  const size_t first = results.size();
  for (const int64_t budget : options.budgets) {
    if (interrupt.came()) break;
    // What a budget comes to decides how trees are made, too.
    const absl::StatusOr<PlannedJob> planned = PlanJob(job, budget, options, interrupt);
    if (absl::IsCancelled(planned.status())) break;
    if (!planned.ok()) return planned.status();
    SLUICE_RETURN_IF_ERROR(RunBudget(job.name, *planned, budget, options, interrupt, &results));
  }
  CompareWithNoBudget(&results);
  for (size_t i = first; i < results.size(); ++i) {
    std::fputs(SimTableRow(results[i]).c_str(), stdout);
  }
  std::fflush(stdout);
  return SaveSim(options, *report);
}

absl::Status SaveSim(const SimOptions& options, const SimReport& report) {
  if (options.json_file.empty()) return absl::OkStatus();
  return WriteFile(options.json_file, SimJson(options, report));
}

int RefuseSim(const absl::Status& status, const SimOptions& options, SimReport* report) {
  absl::FPrintF(stderr, "sluice-sim: %s\n", absl::StrCat(status.message()));
  report->finished = true;
  report->errors.push_back({report->running, std::string(status.message())});
  SaveSim(options, *report).IgnoreError();  // the error itself may be that it cannot be written
  return kBadUsageExit;
}

std::string SimWords(const SimReport& report) {
  std::string text;
  for (size_t i = 0; i < report.results.size();) {
    std::vector<BudgetRun> runs;
    const std::string& name = report.results[i].family;
    const int ranks = report.results[i].ranks;
    for (; i < report.results.size(); ++i) {
      const SimResult& r = report.results[i];
      if (r.family != name || r.ranks != ranks) break;
      if (r.stopped || r.stalled) return text;
      runs.push_back({r.budget, r.peak_max, r.peak_bytes_max, r.makespan_us});
    }
    if (runs.size() < 2 || runs[0].limit_buckets != 0) continue;
    absl::StrAppend(&text, "\n", name, ", ", ranks, " ranks, simulated:\n", BudgetWords(runs));
  }
  return text;
}

int FinishSim(const absl::Status& status, const SimOptions& options, const Interrupt& interrupt,
              SimReport* report) {
  int exit_code = kGoodExit;
  const auto complain = [&](const absl::Status& of) {
    if (of.ok()) return;
    absl::FPrintF(stderr, "sluice-sim: %s\n", absl::StrCat(of.message()));
    exit_code = kFailedExit;
  };
  complain(status);
  report->finished = true;
  if (!status.ok()) report->errors.push_back({report->running, std::string(status.message())});
  for (const SimResult& result : report->results) {
    if (!result.stalled) continue;
    report->errors.push_back({result.family, absl::StrCat("budget ", result.budget, ": stalled")});
    exit_code = kFailedExit;
  }
  if (interrupt.came()) report->errors.push_back({"", "interrupted: not all has been run"});
  std::fputs(SimWords(*report).c_str(), stdout);
  complain(SaveSim(options, *report));
  if (!options.csv_file.empty()) {
    complain(WriteFile(options.csv_file, SimCsv(options, report->results)));
  }
  return interrupt.came() ? kInterruptedExit : exit_code;
}

}  // namespace sluice::bench
