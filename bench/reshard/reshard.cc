// The cases, one after the other.
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "commands.h"
#include "job/command.h"
#include "memory/memory_watch.h"
#include "reshard/baseline_runs.h"
#include "reshard/lanes.h"
#include "reshard/options.h"
#include "reshard/report.h"
#include "reshard/runner.h"
#include "sluice/status.h"
#include "tensor/quoted.h"
#include "tensor/stable_hash.h"
#include "workload/json_input.h"
#include "workload/layout_ranks.h"
#include "workload/numbers.h"

namespace sluice::bench {
namespace {

// A value that differs if the cases differ in number, names, or in which of them are readable.
// What is in them is compared by Session::Compile.
uint64_t HashCases(const Workload& workload) {
  StableHash hash;
  for (const Case& entry : workload.cases) {
    hash.AddText(entry.id);
    hash.Add(entry.status.ok() ? 1 : 0);
  }
  return hash.value();
}

class ReshardCommand final : public Command {
 public:
  explicit ReshardCommand(const Options& options)
      : Command({"reshard", options.json_file, options.timeout(), options.ranks_per_node},
                &report_),
        options_(options) {}

 private:
  absl::StatusOr<KnobList> Describe() override {
    SLUICE_RETURN_IF_ERROR(CheckBaselines());
    WorkloadOptions of_job = options_;
    InlineFlags& flags = of_job.inline_flags;
    if (!flags.collective.empty() && flags.ranks == 0) flags.ranks = job()->size();
    SLUICE_ASSIGN_OR_RETURN(workload_, MakeWorkload(of_job));
    SLUICE_RETURN_IF_ERROR(CheckAnyRuns());
    report_.notes = workload_.notes;
    KnobList knobs = Knobs(options_);
    FlagConfig choices = Choices(options_);
    choices.insert(choices.end(), {{"transport", options_.gpu.transport},
                                   {"format", options_.format},
                                   {"trace", !options_.trace_file.empty()}});
    for (auto& choice : KnobsOf(choices)) knobs.push_back(std::move(choice));
    knobs.emplace_back("number of cases", static_cast<int64_t>(workload_.cases.size()));
    knobs.emplace_back("cases", static_cast<int64_t>(HashCases(workload_) >> 1));
    return knobs;
  }

  absl::Status Run(Ranks* ranks, std::unique_ptr<Fabric> fabric) override {
    auto gpu = OpenGpu(options_.gpu, ranks->local_rank());
    SLUICE_RETURN_IF_ERROR(Needs(AllOk(ranks, gpu.status())));
    report_.nccl_bytes = NcclBytes(options_.gpu, report_.world - 1);
    SLUICE_ASSIGN_OR_RETURN(auto lanes, OpenLanes(options_, *gpu, job(), std::move(fabric)));
    auto baselines = BaselineRuns::Create(options_.baselines, ranks, options_.timeout());
    if (!baselines.ok()) End(baselines.status());
    for (const Lane& lane : lanes) {
      report_.wires.push_back({lane.suffix, lane.session->Report()});
    }
    Print(HeaderText(options_, report_));
    Runner runner(&options_, ranks, baselines->get(), std::move(lanes));
    const size_t cases = workload_.cases.size();
    for (size_t i = 0; i < cases; ++i) {
      const std::string count = cases > 1 ? absl::StrCat("case ", i + 1, " of ", cases, ": ") : "";
      RunCase(workload_.cases[i], count, &runner);
    }
    WriteTrace(&runner);
    absl::Status closed = runner.Close();
    if (!closed.ok()) End(closed);
    is_whole_ = true;
    return absl::OkStatus();
  }

  bool IsGood() const override {
    for (const CaseResult& result : report_.results) {
      if (result.wrong > 0) return false;
    }
    return true;
  }
  std::string Json() const override { return JsonText(options_, report_); }
  std::string Footer() const override { return FooterText(options_, report_, is_whole_); }

  // Baselines are what one would write with MPI.
  absl::Status CheckBaselines() const {
    if (options_.baselines.empty() || job()->kind() == JobKind::kMpi) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        "--baseline ", absl::StrJoin(options_.baselines, ","), ": takes messages of ", "MPI; ",
        HasMpi() ? "--fabric mpi under mpirun has them" : "this program is built without MPI"));
  }

  // That one case at least can be read, and has ranks enough. Others have errors of their own.
  absl::Status CheckAnyRuns() const {
    const Case* least = nullptr;  // the one with the fewest ranks
    for (const Case& entry : workload_.cases) {
      if (!entry.status.ok()) continue;
      if (JobRanks(entry.spec) <= job()->size()) return absl::OkStatus();
      if (least == nullptr || JobRanks(entry.spec) < JobRanks(least->spec)) least = &entry;
    }
    if (least == nullptr) {
      const Case& first = workload_.cases.front();
      return Prefixed(Escaped(first.id), first.status);
    }
    const int ranks = JobRanks(least->spec);
    return absl::InvalidArgumentError(
        absl::StrCat(options_.preset.empty() ? "case " : "preset ", Escaped(least->id), " takes ",
                     ranks, " ranks, ", job()->size(), job()->size() == 1 ? " was" : " were",
                     " started: ", job()->kind() == JobKind::kMpi ? "-np " : "-n ", ranks));
  }

  void WriteTrace(Runner* runner) {
    const auto line = runner->WriteTrace();
    if (EndsAll(line.status())) End(line.status());
    if (!line.ok()) AddError("", line.status());
    if (line.ok() && !line->empty()) Print(absl::StrCat("# ", *line, "\n"));
  }

  void RunCase(const Case& entry, const std::string& count, Runner* runner) {
    bool fatal = false;
    auto results = runner->Run(entry, count + Escaped(entry.id), &fatal);
    if (!results.ok()) {
      if (fatal) End(results.status(), entry.id);
      AddError(entry.id, results.status());
      return;
    }
    const CaseResult* before = report_.results.empty() ? nullptr : &report_.results.back();
    for (const CaseResult& result : *results) {
      Print(RowText(options_, result, before));
      before = &result;
      if (options_.corrupt_bytes > 0 && result.corruptible_elements == 0) {
        AddError(entry.id,
                 absl::FailedPreconditionError("--corrupt: no target has a byte to flip"));
      }
    }
    for (const CaseResult& result : *results) AddMemoryErrors(result);
    if (!results->empty()) AddBaselineErrors(entry.id, results->front().baselines);
    for (CaseResult& result : *results) report_.results.push_back(std::move(result));
    SaveResults();
  }

  void AddMemoryErrors(const CaseResult& result) {
    const MemoryGrowth& memory = result.memory;
    if (!memory.IsTooMuch()) return;
    AddError(result.id,
             absl::ResourceExhaustedError(absl::StrCat(
                 "the resident memory of rank ", memory.rank, " grew by ",
                 BytesName(memory.growth_bytes), " in the runs; ", BytesName(memory.allowed_bytes),
                 " are allowed: ", BytesName(memory.allowed_bytes - kMemoryBesideStaging),
                 result.limit_bytes > 0 ? " of staging by the budget, and "
                                        : " of slots that channels fill without a budget, and ",
                 BytesName(kMemoryBesideStaging), " beside it")));
  }

  void AddBaselineErrors(const std::string& id, const std::vector<BaselineResult>& baselines) {
    for (const BaselineResult& baseline : baselines) {
      if (baseline.wrong == 0) continue;
      AddError(id, absl::DataLossError(absl::StrCat("baseline ", baseline.name, ": ",
                                                    baseline.wrong, " elements are wrong")));
    }
  }

  const Options& options_;
  Workload workload_;
  RunReport report_;
  bool is_whole_ = false;  // all cases have been run
};

}  // namespace

int RunReshard(absl::StatusOr<std::unique_ptr<Job>> job, const Options& options,
               const absl::Status& flags) {
  return ReshardCommand(options).Execute(std::move(job), flags);
}

}  // namespace sluice::bench
