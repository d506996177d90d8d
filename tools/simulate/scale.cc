// sluice-sim scale: how peaks, times and the cost of planning grow with the mesh.
#include <cstdint>
#include <cstdio>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "job/flag_list.h"
#include "job/help.h"
#include "simulate/commands.h"
#include "simulate/run_job.h"
#include "sluice/status.h"
#include "workload/json_input.h"
#include "workload/numbers.h"

namespace sluice::bench {
namespace {

// All jobs are made before any is run, so that a wrong one is refused at once.
absl::StatusOr<std::vector<sim::FamilyOptions>> Sizes(const ScaleOptions& options) {
  SLUICE_ASSIGN_OR_RETURN(const std::vector<int> counts,
                          Prefixed("--ranks", ParseRankCounts(options.ranks_text)));
  SLUICE_ASSIGN_OR_RETURN(const auto pair_bytes,
                          Prefixed("--pair-bytes", ParseBytes(options.pair_bytes_text)));
  std::vector<sim::FamilyOptions> sizes;
  for (const int ranks : counts) {
    sim::FamilyOptions of = options.of;
    of.ranks = ranks;
    of.pair_bytes = pair_bytes;
    of.ranks_per_node = options.sim.network.ranks_per_node;
    of.bucket_bytes = options.sim.bucket_bytes;
    of.max_in_flight = options.sim.max_in_flight;
    SLUICE_RETURN_IF_ERROR(sim::CheckFamily(options.family, of));
    sizes.push_back(of);
  }
  return sizes;
}

absl::Status RunSizes(const ScaleOptions& options, const std::vector<sim::FamilyOptions>& sizes,
                      const Interrupt& interrupt, SimReport* report) {
  std::fputs(SimTableHeader(options.sim).c_str(), stdout);
  for (const sim::FamilyOptions& of : sizes) {
    if (interrupt.came()) break;
    SLUICE_ASSIGN_OR_RETURN(const sim::Job job, sim::MakeFamily(options.family, of));
    report->running = job.name;
    SLUICE_RETURN_IF_ERROR(
        Prefixed(absl::StrCat(of.ranks, " ranks"), RunJob(job, options.sim, interrupt, report)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<int>> ParseRankCounts(absl::string_view text) {
  const bool sweeps = text.find(':') != absl::string_view::npos;
  std::vector<int> numbers;
  for (const absl::string_view part : absl::StrSplit(text, sweeps ? ':' : ',')) {
    int number = 0;
    if (!absl::SimpleAtoi(part, &number) || number < 1) {
      return absl::InvalidArgumentError(absl::StrCat("'", text,
                                                     "' is neither a list of numbers "
                                                     "nor FROM:TO:FACTOR"));
    }
    numbers.push_back(number);
  }
  if (!sweeps) return numbers;
  if (numbers.size() != 3 || numbers[0] > numbers[1] || numbers[2] < 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "' is not FROM:TO:FACTOR with FROM at most TO and FACTOR from 2"));
  }
  std::vector<int> counts;
  for (int64_t count = numbers[0]; count <= numbers[1]; count *= numbers[2]) {
    counts.push_back(static_cast<int>(count));
  }
  return counts;
}

void AddScaleFlags(CLI::App* app, ScaleOptions* options) {
  const std::string families =
      absl::StrCat("one of ", absl::StrJoin(sim::FamilyNames(), ", "), " [all-to-all]");
  AddFlags(app, {{"What to simulate",
                  {{"--family", &options->family, families.c_str()},
                   {"--ranks", &options->ranks_text,
                    "FROM:TO:FACTOR, or a list: 16:65536:4, or 16,100,256 [16:256:4]"},
                   {"--peers", &options->of.peers,
                    "of the family peers: whom each rank sends to [256]", Within(1, 1 << 17)},
                   {"--pair-bytes", &options->pair_bytes_text,
                    "of all-to-all and peers: from each rank to each of its peers [8M]"}}}});
  AddSimFlags(app, "8", &options->sim);
  SetHelp(app, "build/bin/sluice-sim scale --family all-to-all --ranks 16:64:2 --budget-buckets 8",
          "",
          {"family", "ranks", "peers", "pair-bytes", "budget-buckets", "bucket-bytes",
           "max-in-flight", "network", "json"});
}

int RunScale(ScaleOptions* options) {
  SimReport report;
  report.what = {{"command", "scale"},
                 {"family", options->family},
                 {"ranks", options->ranks_text},
                 {"peers", options->of.peers},
                 {"pair_bytes", 0}};
  absl::Status status = ParseSimTexts(&options->sim);
  std::vector<sim::FamilyOptions> sizes;
  if (status.ok()) {
    auto made = Sizes(*options);
    status = made.status();
    if (made.ok()) sizes = *std::move(made);
  }
  if (!sizes.empty()) report.what["pair_bytes"] = sizes.front().pair_bytes;
  if (status.ok()) status = SaveSim(options->sim, report);
  if (!status.ok()) return RefuseSim(status, options->sim, &report);
  const Interrupt interrupt;
  status = RunSizes(*options, sizes, interrupt, &report);
  return FinishSim(status, options->sim, interrupt, &report);
}

}  // namespace sluice::bench
