// From the command line to the exit code.
#include "reshard/reshard.h"

#include <mpi.h>
#include <time.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "memory/memory_watch.h"
#include "reshard/agreement.h"
#include "reshard/baseline_runs.h"
#include "reshard/lanes.h"
#include "reshard/ranks.h"
#include "reshard/report_json.h"
#include "reshard/report_table.h"
#include "reshard/runner.h"
#include "sluice/mpi.h"
#include "workload/numbers.h"
#include "workload/write_file.h"

namespace sluice::bench {
namespace {

// The state of one rank of the subcommand.
class Command {
 public:
  explicit Command(const Options& options) : options_(options) {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &report_.world);
    report_.mpi = MpiVersion();
  }

  int Run(const absl::Status& flags) {
    absl::Status status = flags;
    Workload workload;
    std::unique_ptr<Fabric> fabric = MakeFabric();
    if (status.ok()) status = Load(&workload);
    Understanding mine{status, Knobs(options_)};
    for (auto& choice : Choices(options_)) mine.knobs.push_back(std::move(choice));
    for (auto& compared : ComparedKnobs(options_)) mine.knobs.push_back(std::move(compared));
    mine.knobs.emplace_back("number of cases", static_cast<int64_t>(workload.cases.size()));
    mine.knobs.emplace_back("cases", static_cast<int64_t>(HashCases(workload) >> 1));
    status = Agree(mine, options_.timeout(), fabric.get());
    if (EndsAll(status)) End("", status);
    if (!status.ok()) return Refuse(status);
    return RunAll(workload, std::move(fabric));
  }

 private:
  std::unique_ptr<Fabric> MakeFabric() {
    auto fabric = MakeMpiFabric(MPI_COMM_WORLD, {options_.ranks_per_node, options_.timeout()});
    if (!fabric.ok()) End("", fabric.status());
    return *std::move(fabric);
  }

  absl::Status Load(Workload* workload) {
    if (rank_ == 0) {
      absl::Status writable = WriteJson();
      if (!writable.ok()) return writable;
    }
    auto loaded = MakeWorkload(options_);
    if (!loaded.ok()) return loaded.status();
    *workload = *std::move(loaded);
    report_.notes = workload->notes;
    return absl::OkStatus();
  }

  int RunAll(const Workload& workload, std::unique_ptr<Fabric> fabric) {
    auto ranks = Ranks::Create(options_.timeout());
    if (!ranks.ok()) End("", ranks.status());
    report_.hosts = (*ranks)->hosts();
    auto gpu = OpenGpu(options_.gpu, (*ranks)->local_rank());
    absl::Status opened =
        (*ranks)->AllOk(gpu.status(), options_.timeout(), [] { return absl::OkStatus(); });
    if (!opened.ok()) {
      ranks->reset();
      return Refuse(opened);
    }
    report_.nccl_bytes = NcclBytes(options_.gpu, report_.world - 1);
    auto lanes = MakeLanes(options_, *gpu, std::move(fabric));
    if (!lanes.ok() && EndsAll(lanes.status())) End("", lanes.status());
    if (!lanes.ok()) {
      ranks->reset();  // it frees a communicator, which must come before MPI_Finalize
      return Refuse(lanes.status());
    }
    auto baselines = BaselineRuns::Create(options_.baselines, ranks->get(), options_.timeout());
    if (!baselines.ok()) End("", baselines.status());
    if (rank_ == 0) {
      Print(stdout, IsOsu() ? OsuHeader(report_) : TableHeader(options_, report_));
    }
    {
      Runner runner(&options_, ranks->get(), baselines->get(), *std::move(lanes));
      for (const Case& entry : workload.cases) RunCase(entry, &runner);
      WriteTrace(&runner);
      absl::Status closed = runner.Close();
      if (!closed.ok()) End("", closed);
    }
    baselines->reset();
    ranks->reset();
    return Finish();
  }

  void WriteTrace(Runner* runner) {
    const auto line = runner->WriteTrace();
    if (!line.ok() && EndsAll(line.status())) End("", line.status());
    if (!line.ok()) AddError("", line.status());
    if (line.ok() && !line->empty()) Print(stdout, absl::StrCat("# ", *line, "\n"));
  }

  void RunCase(const Case& entry, Runner* runner) {
    bool fatal = false;
    auto results = runner->Run(entry, &fatal);
    if (!results.ok()) {
      if (fatal) End(entry.id, results.status());
      AddError(entry.id, results.status());
      return;
    }
    for (const CaseResult& result : *results) {
      if (rank_ == 0) Print(stdout, IsOsu() ? OsuRow(result) : TableRow(result));
      if (options_.corrupt_bytes > 0 && result.corruptible_elements == 0) {
        AddError(entry.id,
                 absl::FailedPreconditionError("--corrupt: no target has a byte to flip"));
      }
    }
    for (const CaseResult& result : *results) AddMemoryErrors(result);
    if (!results->empty()) AddBaselineErrors(entry.id, results->front().baselines);
    for (CaseResult& result : *results) report_.results.push_back(std::move(result));
    if (rank_ != 0) return;
    absl::Status written = WriteJson();
    if (!written.ok()) Print(stderr, absl::StrCat("# error: ", written.message(), "\n"));
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
                                        : " of staging by the plan without a budget, and ",
                 BytesName(kMemoryBesideStaging), " beside it")));
  }

  void AddBaselineErrors(const std::string& id, const std::vector<BaselineResult>& baselines) {
    for (const BaselineResult& baseline : baselines) {
      if (baseline.wrong == 0) continue;
      AddError(id, absl::DataLossError(absl::StrCat("baseline ", baseline.name, ": ",
                                                    baseline.wrong, " elements are wrong")));
    }
  }

  bool IsOsu() const { return options_.format == "osu"; }

  // The orderly end, on all ranks.
  int Finish() {
    int code = EXIT_SUCCESS;
    report_.finished = true;
    if (rank_ == 0) {
      Print(stdout, TableFooter(report_));
      if (!options_.model_file.empty()) Print(stdout, InWords(report_.results));
      absl::Status written = WriteJson();
      if (!written.ok()) Print(stderr, absl::StrCat("# error: ", written.message(), "\n"));
      if (!written.ok()) code = EXIT_FAILURE;
    }
    for (const CaseResult& result : report_.results) {
      if (result.wrong > 0) code = EXIT_FAILURE;
    }
    if (!report_.errors.empty()) code = EXIT_FAILURE;
    MPI_Finalize();
    return code;
  }

  // The end after an error that all ranks have, before anything has moved.
  int Refuse(const absl::Status& status) {
    report_.finished = true;
    AddError("", status);
    if (rank_ == 0) {
      Print(stderr, absl::StrCat("sluice-bench reshard: ", status.message(), "\n"));
      WriteJson().IgnoreError();  // the error itself may be that it cannot be written
    }
    MPI_Finalize();
    return EXIT_FAILURE;
  }

  // The end after an error that others may not have: ends the job.
  [[noreturn]] void End(const std::string& id, const absl::Status& status) {
    report_.finished = true;
    AddError(id, status);
    if (rank_ == 0) {
      Print(stdout, TableFooter(report_));
      WriteJson().IgnoreError();
    }
    Print(stderr, absl::StrCat("sluice-bench reshard: rank ", rank_, ": ", status.message(), "\n"));
    if (rank_ != 0) absl::SleepFor(kGraceForRankZero);
    MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    std::_Exit(EXIT_FAILURE);
  }

  void AddError(const std::string& id, const absl::Status& status) {
    report_.errors.push_back({id, absl::StrCat(status.message())});
  }

  absl::Status WriteJson() {
    if (rank_ != 0 || options_.json_file.empty()) return absl::OkStatus();
    return WriteFile(options_.json_file, JsonText(options_, report_));
  }

  static void Print(FILE* stream, const std::string& text) {
    std::fputs(text.c_str(), stream);
    std::fflush(stream);
  }

  const Options& options_;
  int rank_ = 0;
  RunReport report_;
};

}  // namespace

int RunReshard(const Options& options, const absl::Status& flags) {
  Command command(options);
  return command.Run(flags);
}

}  // namespace sluice::bench
