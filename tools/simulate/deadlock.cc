// From the flags to a campaign of random jobs, and from its result to a table and JSON.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "deadlock/campaign.h"
#include "deadlock/rules.h"
#include "job/exit_codes.h"
#include "job/flags.h"
#include "job/help.h"
#include "report/progress_line.h"
#include "report/report.h"
#include "simulate/commands.h"
#include "simulate/run_job.h"
#include "sluice/status.h"
#include "workload/json_input.h"
#include "workload/write_file.h"

namespace sluice::bench {
namespace {

using deadlock::CampaignOptions;
using deadlock::CampaignResult;
using deadlock::GateRule;

// As the only result's name: "escape", "escape/slots-off".
std::string CaseOf(const DeadlockOptions& options) {
  return options.switch_off.empty() ? options.rule
                                    : absl::StrCat(options.rule, "/", options.switch_off, "-off");
}

absl::StatusOr<CampaignOptions> Parse(const DeadlockOptions& options) {
  if (!options.flags.ok()) return options.flags;
  CampaignOptions campaign{.rules = {},
                           .seed = options.seed,
                           .first = options.first,
                           .runs = options.runs,
                           .ranks_max = options.ranks_max};
  SLUICE_ASSIGN_OR_RETURN(const GateRule rule,
                          Prefixed("--rule", deadlock::ParseGateRule(options.rule)));
  campaign.rules.rule = rule;
  if (options.switch_off.empty()) return campaign;
  SLUICE_ASSIGN_OR_RETURN(const deadlock::Premise off,
                          Prefixed("--switch-off", deadlock::ParsePremise(options.switch_off)));
  if (rule != GateRule::kEscape) {
    return absl::InvalidArgumentError("--switch-off: only --rule escape rests on premises");
  }
  campaign.rules.off = off;
  return campaign;
}

// At the clock, only now and then.
void ShowProgress(const CampaignResult& result, int64_t runs, ProgressLine* line) {
  constexpr int64_t kRunsBetweenLooks = 64;
  if (result.runs % kRunsBetweenLooks != 0 || !line->IsDue()) return;
  line->Draw(absl::StrFormat("%d/%d runs, %d stalled, %.0f s", result.runs, runs, result.stalled,
                             absl::ToDoubleSeconds(line->elapsed())));
}

double StallRate(const CampaignResult& result) {
  return static_cast<double>(result.stalled) /
         static_cast<double>(std::max<int64_t>(result.runs, 1));
}

void PrintTable(const CampaignOptions& options, const CampaignResult& result, bool interrupted) {
  absl::PrintF("rule      %s%s%s\n", NameOf(options.rules.rule),
               options.rules.off ? ", without " : "",
               options.rules.off ? NameOf(*options.rules.off) : "");
  absl::PrintF("runs      %d of seed %d, from run %d, up to %d ranks%s\n", result.runs,
               options.seed, options.first, options.ranks_max, interrupted ? " (interrupted)" : "");
  absl::PrintF("work      %d buckets, %d events; %d runs reached their budget\n", result.buckets,
               result.events, result.reached_budget);
  absl::PrintF("stalled   %d (%.3f %%)", result.stalled, 100 * StallRate(result));
  if (result.stalled > 0) absl::PrintF(", first run %d", result.first_stalled);
  absl::PrintF("\n");
  if (!result.smallest) return;
  const deadlock::Smallest& smallest = *result.smallest;
  absl::PrintF("smallest  run %d, shrunk; buckets: %d, ranks: %d\n\n%s", smallest.run,
               smallest.job.buckets.size(), smallest.job.ranks, smallest.script);
}

Json ConfigJson(const DeadlockOptions& options) {
  return {
      {"command", "deadlock"},         {"rule", options.rule}, {"switch_off", options.switch_off},
      {"iters", options.runs},         {"seed", options.seed}, {"first", options.first},
      {"ranks_max", options.ranks_max}};
}

std::string JsonText(const DeadlockOptions& options, const Json& found,
                     const std::vector<JobError>& errors) {
  Json json = ResultsHead(ConfigJson(options));
  json["results"] = Json::array();
  if (!found.is_null()) json["results"].push_back(found);
  json["errors"] = ErrorsJson(errors);
  return ResultsText(json);
}

// A search takes no time that would be of anything but this machine.
Json FoundJson(const DeadlockOptions& options, const CampaignResult& result, bool interrupted) {
  Json json = {{"case", CaseOf(options)},
               {"time_us", nullptr},
               {"gb_per_s", nullptr},
               {"runs", result.runs},
               {"stalled", result.stalled},
               {"stall_rate", StallRate(result)},
               {"buckets", result.buckets},
               {"events", result.events},
               {"reached_budget", result.reached_budget},
               {"interrupted", interrupted},
               {"first_stalled", nullptr},
               {"smallest", nullptr}};
  if (result.stalled > 0) json["first_stalled"] = result.first_stalled;
  if (result.smallest) {
    const deadlock::Smallest& smallest = *result.smallest;
    json["smallest"] = {{"run", smallest.run},
                        {"ranks", smallest.job.ranks},
                        {"buckets", smallest.job.buckets.size()},
                        {"slots", smallest.job.options.slots},
                        {"script", smallest.script}};
  }
  return json;
}

// Only the engine's rule promises that nothing stalls, and only with all its premises.
std::vector<JobError> ErrorsOf(const CampaignOptions& options, const CampaignResult& result,
                               bool interrupted) {
  std::vector<JobError> errors;
  const std::string rule(NameOf(options.rules.rule));
  if (options.rules.rule == GateRule::kEscape && !options.rules.off && result.stalled > 0) {
    errors.push_back(
        {rule, absl::StrCat(result.stalled, " runs stalled, the first is ", result.first_stalled)});
  }
  if (interrupted) errors.push_back({"", "interrupted: not all has been run"});
  return errors;
}

int Fail(const absl::Status& status, int code) {
  absl::FPrintF(stderr, "sluice-sim deadlock: %s\n", status.message());
  return code;
}

int Refuse(const absl::Status& status, const DeadlockOptions& options) {
  if (!options.json_file.empty()) {
    const std::string json = JsonText(options, Json(), {{"", std::string(status.message())}});
    WriteFile(options.json_file, json).IgnoreError();  // the error may be that it cannot be written
  }
  return Fail(status, kBadUsageExit);
}

absl::Status WriteFiles(const DeadlockOptions& options, const std::string& json,
                        const CampaignResult& result) {
  absl::Status status;
  if (!options.json_file.empty()) status.Update(WriteFile(options.json_file, json));
  if (!options.script_file.empty()) {
    status.Update(WriteFile(options.script_file, result.smallest ? result.smallest->script : ""));
  }
  return status;
}

}  // namespace

CLI::App* AddDeadlockCommand(CLI::App& app, DeadlockOptions* o) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max() / 2;
  CLI::App* command = app.add_subcommand("deadlock", "run random jobs and count those that stall");
  command->add_option("--rule", o->rule,
                      "admission: escape (the engine's), plain (a bare semaphore, each rank goes "
                      "round its own channels) or ordered (strict head-of-line) [escape]");
  command->add_option("--switch-off", o->switch_off,
                      "a premise of escape to do without: reduction-order, slots, start-order, "
                      "group-unit or device-slot-order [none]");
  command
      ->add_option("-n,--iters,--runs", o->runs,
                   "random jobs, each in a random order of events [1000]")
      ->check(CLI::Range(int64_t{1}, kMost));
  command->add_option("--seed", o->seed, "with a run's number all that it depends on [0]");
  command->add_option("--first", o->first, "number of the first run [0]")
      ->check(CLI::Range(int64_t{0}, kMost));
  command->add_option("--ranks-max", o->ranks_max, "most ranks of a job [8]")
      ->check(CLI::Range(deadlock::kRanksMin, deadlock::kRanksMost));
  command->add_option("-J,--json", o->json_file, "write the result here, also on failure");
  command->add_option("--script", o->script_file,
                      "write the smallest stalled run here, as a script for engines");
  AddSwitch(command, "--progress", &o->progress,
            "show progress even if standard error is no terminal");
  SetHelp(command, "build/bin/sluice-sim deadlock --rule plain --runs 1000");
  return command;
}

int RunDeadlock(const DeadlockOptions& options) {
  const absl::StatusOr<CampaignOptions> campaign = Parse(options);
  if (!campaign.ok()) return Refuse(campaign.status(), options);
  absl::Status status = MakeWritable({options.script_file});
  if (status.ok() && !options.json_file.empty()) {
    status =
        WriteFile(options.json_file, JsonText(options, Json(), {{"", "the run has not ended"}}));
  }
  if (!status.ok()) return Refuse(status, options);
  const Interrupt interrupt;
  ProgressLine line(options.progress);
  const CampaignResult result = deadlock::RunCampaign(*campaign, [&](const CampaignResult& so_far) {
    ShowProgress(so_far, campaign->runs, &line);
    return !interrupt.came();
  });
  line.Clear();
  const bool interrupted = result.runs < campaign->runs;
  PrintTable(*campaign, result, interrupted);
  const std::vector<JobError> errors = ErrorsOf(*campaign, result, interrupted);
  const absl::Status written = WriteFiles(
      options, JsonText(options, FoundJson(options, result, interrupted), errors), result);
  if (!written.ok()) return Fail(written, kFailedExit);
  if (interrupted) return kInterruptedExit;
  return errors.empty() ? kGoodExit : kFailedExit;
}

}  // namespace sluice::bench
