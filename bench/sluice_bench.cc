// sluice-bench: measures and checks Sluice, on one rank or many, whatever has started them.
#include <CLI/CLI.hpp>
#include <iostream>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "checkpoint/options.h"
#include "commands.h"
#include "doctor/options.h"
#include "gpu/gpu.h"
#include "job/built_with.h"
#include "job/exit_codes.h"
#include "job/flags.h"
#include "job/help.h"
#include "job/job.h"
#include "report/run_report.h"
#include "reshard/options.h"
#include "shards/make_shards.h"
#include "stream/options.h"
#include "sync/options.h"
#include "workload/presets.h"
#include "world/launch.h"

int main(int argc, char** argv) {
  // Before there is a job, only the launcher's environment tells which process is to print.
  const bool is_first = sluice::OwnLaunch().rank == 0;
  sluice::bench::Options options;
  sluice::bench::ShardsOptions shards_options;
  sluice::bench::StreamBenchOptions stream_options;
  CLI::App app("Moves tensors between ranks and data from storage, times and checks it.",
               "sluice-bench");
  app.set_version_flag(
      "--version", absl::StrCat("sluice-bench ", SLUICE_VERSION, " (", sluice::bench::BuiltWith(),
                                ")\nbuilt in: ", sluice::HasMpi() ? "MPI, " : "no MPI, ",
                                sluice::bench::GpuBuiltWith()));
  app.require_subcommand(1);
  CLI::App* reshard = app.add_subcommand("reshard", "redistribute tensors between two layouts");
  sluice::bench::AddFlags(reshard, &options);
  CLI::App* shards = app.add_subcommand("shards", "write data shards to stream (no mpirun needed)");
  sluice::bench::AddShardsFlags(shards, &shards_options);
  CLI::App* stream = app.add_subcommand("stream", "bring data shards to a consumer (or mpirun)");
  sluice::bench::AddStreamFlags(stream, &stream_options);
  sluice::bench::CheckpointBenchOptions checkpoint_options;
  CLI::App* checkpoint = app.add_subcommand("checkpoint", "load and save checkpoints");
  sluice::bench::AddFlags(checkpoint, &checkpoint_options);
  sluice::bench::DoctorOptions doctor_options;
  CLI::App* doctor = app.add_subcommand("doctor", "what makes a job slower than it could be");
  sluice::bench::AddDoctorFlags(doctor, &doctor_options);
  sluice::bench::SyncOptions sync_options;
  CLI::App* sync = app.add_subcommand("sync", "one side of a weight sync between two jobs");
  sluice::bench::AddFlags(sync, &sync_options);
  sluice::bench::ReportOptions report_options;
  CLI::App* report = app.add_subcommand("report", "one HTML page of files of results");
  sluice::bench::AddReportFlags(report, &report_options);
  sluice::bench::SetHelp(
      &app,
      "scripts/mpirun.sh --oversubscribe -np 16 build/bin/sluice-bench reshard \\\n"
      "  --preset etha-3-no_partial",
      "sluice-bench COMMAND --help says more of each, and has an example.");
  absl::Status flags;
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return is_first ? app.exit(error) : sluice::bench::kGoodExit;
    if (sluice::bench::NamesNoCommand(app)) {
      if (is_first) std::cerr << sluice::bench::NoCommandText(app, argc, argv);
      return sluice::bench::kBadUsageExit;
    }
    flags = sluice::bench::FlagsStatus(app, error);
    options.fabric = stream_options.fabric = sluice::bench::FindFabric(argc, argv);
    checkpoint_options.fabric = doctor_options.fabric = options.fabric;
    options.json_file = stream_options.json_file = sluice::bench::FindJsonFile(argc, argv);
    shards_options.flags = flags;
    shards_options.json_file = options.json_file;
    checkpoint_options.json_file = doctor_options.json_file = options.json_file;
    sync_options.json_file = options.json_file;
  }
  if (shards->parsed()) {
    // Of many processes one does it for all.
    return is_first ? sluice::bench::RunShards(shards_options) : sluice::bench::kGoodExit;
  }
  if (report->parsed()) {
    return is_first ? sluice::bench::ShowReport(report_options, flags) : sluice::bench::kGoodExit;
  }
  // Whose processes are no ranks of one job.
  if (sync->parsed()) return sluice::bench::RunSync(&sync_options, flags);
  // Each command waits for ranks as long as its own flags say.
  const auto start = [&](const auto& of_command, bool all_threads) {
    return sluice::bench::StartJob(of_command.fabric, all_threads, of_command.timeout());
  };
  if (stream->parsed()) {
    if (flags.ok()) flags = sluice::bench::ParseStreamTexts(&stream_options);
    return sluice::bench::RunStream(start(stream_options, stream_options.progress_thread),
                                    stream_options, flags);
  }
  if (checkpoint->parsed()) {
    return sluice::bench::RunCheckpoint(
        start(checkpoint_options, checkpoint_options.progress_thread), checkpoint_options, flags);
  }
  if (doctor->parsed()) {
    // It asks for all threads, to say which of them MPI allows.
    return sluice::bench::RunDoctor(start(doctor_options, true), doctor_options, flags);
  }
  if (flags.ok() && options.list_presets) {
    if (is_first) std::cout << sluice::bench::PresetListText();
    return sluice::bench::kGoodExit;
  }
  if (flags.ok()) flags = sluice::bench::ParseTexts(&options);
  if (options.plan_only) {
    // Of many processes one plans for all.
    return is_first ? sluice::bench::RunPlanOnly(options, flags) : sluice::bench::kGoodExit;
  }
  return sluice::bench::RunReshard(start(options, options.progress_thread), options, flags);
}
