// sluice-sim peak: how much is held at once in given jobs, and what a budget costs.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "job/exit_codes.h"
#include "job/help.h"
#include "simulate/commands.h"
#include "simulate/run_job.h"
#include "sluice/status.h"
#include "tensor/quoted.h"
#include "workload/json_input.h"
#include "workload/layout_ranks.h"
#include "workload/presets.h"
#include "workload/write_file.h"

namespace sluice::bench {
namespace {

nlohmann::ordered_json WhatOf(const WorkloadOptions& o) {
  const InlineFlags& in = o.inline_flags;
  return {{"command", "peak"},           {"cases", o.cases_file},   {"preset", o.preset},
          {"model", o.model_file},       {"system", o.system_file}, {"layers", o.cut.layers},
          {"scale", o.cut.scale},        {"replicas", o.replicas},  {"shape", in.shape},
          {"dtype", in.dtype},           {"src", in.src},           {"dst", in.dst},
          {"collective", in.collective}, {"ranks", in.ranks}};
}

absl::Status RunCases(const PeakOptions& options, const Interrupt& interrupt, SimReport* report) {
  SLUICE_ASSIGN_OR_RETURN(Workload workload, MakeWorkload(options.workload));
  for (const std::string& note : workload.notes) std::printf("# note: %s\n", note.c_str());
  std::fputs(SimTableHeader(options.sim).c_str(), stdout);
  for (Case& of : workload.cases) {
    if (interrupt.came()) break;
    report->running = of.id;
    const std::string where = absl::StrCat("case ", Quoted(of.id));
    SLUICE_RETURN_IF_ERROR(Prefixed(where, of.status));
    sim::Job job;
    job.name = Escaped(of.id);
    job.ranks = JobRanks(of.spec);
    job.spec = std::move(of.spec);
    job.bucket_bytes = options.sim.bucket_bytes;
    job.max_in_flight = options.sim.max_in_flight;
    for (int rank = 0; rank < job.ranks; ++rank) {
      job.node_of_rank.push_back(rank / options.sim.network.ranks_per_node);
    }
    SLUICE_RETURN_IF_ERROR(Prefixed(where, RunJob(job, options.sim, interrupt, report)));
  }
  return absl::OkStatus();
}

}  // namespace

void AddPeakFlags(CLI::App* app, PeakOptions* options) {
  AddWorkloadFlags(app, &options->workload);
  AddSimFlags(app, "0,1,2,4,8,16,32", &options->sim);
  SetHelp(app,
          "build/bin/sluice-sim peak --model llama-3-8b --layers 2 \\\n"
          "  --system llama-3-8b-fsdp8-tp8 --budget-buckets 0,8",
          "",
          {"preset", "model", "system", "layers", "scale", "collective", "ranks", "shape", "src",
           "dst", "budget-buckets", "bucket-bytes", "max-in-flight", "network", "json"});
}

int RunPeak(PeakOptions* options) {
  if (options->workload.list_presets) {
    std::fputs(PresetListText().c_str(), stdout);
    return kGoodExit;
  }
  SimReport report;
  report.what = WhatOf(options->workload);
  const WorkloadOptions& inputs = options->workload;
  absl::Status status = KeepApart(&options->sim.json_file, {{"--cases", inputs.cases_file},
                                                            {"--model", inputs.model_file},
                                                            {"--system", inputs.system_file}});
  if (status.ok()) status = ParseSimTexts(&options->sim);
  if (status.ok()) status = SaveSim(options->sim, report);
  if (!status.ok()) return RefuseSim(status, options->sim, &report);
  const Interrupt interrupt;
  status = RunCases(*options, interrupt, &report);
  const bool refused = absl::IsInvalidArgument(status) || absl::IsNotFound(status);
  if (refused && report.results.empty()) return RefuseSim(status, options->sim, &report);
  return FinishSim(status, options->sim, interrupt, &report);
}

}  // namespace sluice::bench
