// From flags to the exit code of one process.
#include <cstdio>
#include <string>

#include "absl/strings/str_cat.h"
#include "commands.h"
#include "job/exit_codes.h"
#include "sluice/world.h"
#include "sync/member.h"
#include "sync/options.h"
#include "sync/report.h"
#include "sync/weights.h"
#include "workload/write_file.h"

namespace sluice::bench {
namespace {

absl::Status SaveSync(const SyncOptions& options, const SyncReport& report) {
  if (options.json_file.empty()) return absl::OkStatus();
  return WriteFile(options.json_file, JsonText(options, report));
}

void ComplainOf(const SyncReport& report, const absl::Status& status) {
  const std::string who =
      report.role.empty() ? "" : absl::StrCat(report.role, " ", report.rank, ": ");
  std::fputs(absl::StrCat("sluice-bench sync: ", who, status.message(), "\n").c_str(), stderr);
}

int FailSync(const absl::Status& status, int code, const SyncOptions& options, SyncReport* report) {
  report->finished = true;
  report->errors.push_back({"", std::string(status.message())});
  ComplainOf(*report, status);
  SaveSync(options, *report).IgnoreError();  // the error itself may be that it cannot be written
  return code;
}

}  // namespace

int RunSync(SyncOptions* options, const absl::Status& flags) {
  SyncReport report;
  report.role = options->role;
  report.rank = options->rank;
  report.size = options->size;
  absl::Status status = flags.ok() ? CheckFlags(options) : flags;
  if (!status.ok()) return FailSync(status, kBadUsageExit, *options, &report);
  const auto world = WorldOptionsOf(*options);
  if (!world.ok()) return FailSync(world.status(), kBadUsageExit, *options, &report);
  report.role = world->role;
  report.rank = world->rank;
  report.size = world->size;
  report.wires = world->wires;
  report.store = world->store;
  const auto weights = SyncWeights::Make(*options);
  if (!weights.ok()) return FailSync(weights.status(), kBadUsageExit, *options, &report);
  // Before hours of work that nobody could write down.
  status = SaveSync(*options, report);
  if (!status.ok()) return FailSync(status, kBadUsageExit, *options, &report);
  status = RunMember(*options, *weights, *world, &report);
  if (!status.ok()) return FailSync(status, ExitCodeOf(status), *options, &report);
  report.finished = true;
  if (report.rank == 0) std::fputs(SyncFooter(report).c_str(), stdout);
  status = SaveSync(*options, report);
  if (!status.ok()) ComplainOf(report, status);
  const bool is_printed = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  return status.ok() && is_printed && AllWrong(report) == 0 ? kGoodExit : kFailedExit;
}

}  // namespace sluice::bench
