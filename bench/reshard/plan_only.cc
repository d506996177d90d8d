// From cases to a table and a results file.
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "commands.h"
#include "device/cache_share.h"
#include "job/built_with.h"
#include "job/exit_codes.h"
#include "job/job.h"
#include "reshard/lanes.h"
#include "reshard/options.h"
#include "reshard/plan_figures.h"
#include "reshard/report.h"
#include "session/limits.h"
#include "sluice/status.h"
#include "tensor/quoted.h"
#include "workload/layout_ranks.h"
#include "workload/write_file.h"

namespace sluice::bench {
namespace {

std::string Header(const Options& options, int64_t slots) {
  return absl::StrCat(
      "# sluice-bench reshard ", SLUICE_VERSION, " (", BuiltWith(), "), plans only\n",
      "# ranks_per_node=", options.ranks_per_node,
      " (0: all) bucket_bytes=", options.bucket_bytes.value_or(0),
      " max_in_flight=", options.max_in_flight.value_or(0), " slots=", slots,
      " (0: no limit) coalesce=", options.no_coalesce ? 0 : 1, "\n",
      "# across: bytes between nodes, all over the least that any plan needs; sender, receiver: of "
      "the busiest, over an even spread\n",
      "# most: bytes of a bucket; peak: without a budget, most on any rank\n#\n",
      PlanColumns().TableHead());
}

absl::StatusOr<PlanFigures> PlanCase(const Case& entry, const Options& options,
                                     const std::string& name, bool coalesce, const Budget& budget) {
  if (!entry.status.ok()) return entry.status;
  std::vector<int> node_of_rank(static_cast<size_t>(JobRanks(entry.spec)));
  for (size_t rank = 0; options.ranks_per_node > 0 && rank < node_of_rank.size(); ++rank) {
    node_of_rank[rank] = static_cast<int>(rank) / options.ranks_per_node;
  }
  PlanOptions plan;
  plan.bucket_bytes = options.bucket_bytes.value_or(0);
  plan.max_in_flight = static_cast<int>(options.max_in_flight.value_or(0));
  plan.node_of_rank = node_of_rank;
  plan.slots = budget.slots;
  plan.slot_bytes = budget.slot_bytes;
  plan.cache_bytes = CacheShareBytes();
  plan.relay = Relays(name);
  plan.coalesce = coalesce;
  SLUICE_ASSIGN_OR_RETURN(auto figures, FiguresOf(entry.spec, plan));
  figures.id = absl::StrCat(entry.id, options.compare_plans.empty() ? "" : "/" + name,
                            options.compare_coalesce.empty() ? "" : CoalesceSuffix(coalesce));
  figures.plan = name;
  figures.coalesce = coalesce;
  return figures;
}

// An error ends the case, and is reported.
void PlanEach(const Case& entry, const Options& options, const Budget& budget, RunReport* report) {
  for (const std::string& plan : PlansOf(options)) {
    for (const bool coalesce : CoalesceOf(options)) {
      auto figures = PlanCase(entry, options, plan, coalesce, budget);
      if (!figures.ok()) {
        report->errors.push_back({entry.id, std::string(figures.status().message())});
        return;
      }
      std::fputs(PlanColumns().TableRow(*figures).c_str(), stdout);
      std::fflush(stdout);
      report->plans.push_back(*std::move(figures));
    }
  }
}

absl::Status PlanAll(const Options& options, RunReport* report) {
  SLUICE_ASSIGN_OR_RETURN(const auto budget, ResolveBudget(LanesOf(options).front().options));
  SLUICE_ASSIGN_OR_RETURN(const auto workload, MakeWorkload(options));
  report->notes = workload.notes;
  std::fputs(Header(options, budget.slots).c_str(), stdout);
  for (const Case& entry : workload.cases) PlanEach(entry, options, budget, report);
  return absl::OkStatus();
}

}  // namespace

int RunPlanOnly(const Options& options, const absl::Status& flags) {
  RunReport report;
  report.mpi = MpiVersion();
  absl::Status status = flags;
  if (status.ok()) status = PlanAll(options, &report);
  if (!status.ok()) report.errors.push_back({"", std::string(status.message())});
  report.finished = true;
  if (!options.json_file.empty()) {
    absl::Status written = WriteFile(options.json_file, JsonText(options, report));
    if (!written.ok()) report.errors.push_back({"", std::string(written.message())});
  }
  for (const JobError& error : report.errors) {
    const std::string of_case = error.id.empty() ? "" : absl::StrCat(Escaped(error.id), ": ");
    std::fputs(absl::StrCat("sluice-bench reshard: ", of_case, error.message, "\n").c_str(),
               stderr);
  }
  if (!status.ok()) return flags.ok() ? ExitCodeOf(status) : kBadUsageExit;
  return report.errors.empty() ? kGoodExit : kFailedExit;
}

}  // namespace sluice::bench
