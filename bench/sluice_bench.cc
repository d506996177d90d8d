// sluice-bench: measures and checks Sluice, mostly under mpirun.
#include <mpi.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/options.h"
#include "doctor/doctor.h"
#include "doctor/options.h"
#include "gpu/gpu.h"
#include "job/built_with.h"
#include "job/exit_codes.h"
#include "job/flags.h"
#include "job/help.h"
#include "reshard/options.h"
#include "reshard/plan_only.h"
#include "reshard/reshard.h"
#include "shards/options.h"
#include "shards/shards.h"
#include "stream/options.h"
#include "stream/stream.h"
#include "workload/presets.h"

namespace {

// Before MPI is initialised, only the launcher's environment tells which process is to print.
bool IsFirstProcess() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"}) {
    const char* rank = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): one thread yet
    if (rank != nullptr) return std::strcmp(rank, "0") == 0;
  }
  return true;
}

bool StartMpi(int* argc, char*** argv, bool progress_thread) {
  int provided = 0;
  const int wanted = progress_thread ? MPI_THREAD_MULTIPLE : MPI_THREAD_FUNNELED;
  return MPI_Init_thread(argc, argv, wanted, &provided) == MPI_SUCCESS;
}

}  // namespace

int main(int argc, char** argv) {
  sluice::bench::Options options;
  sluice::bench::ShardsOptions shards_options;
  sluice::bench::StreamBenchOptions stream_options;
  CLI::App app("Moves tensors between ranks and data from storage, times and checks it.",
               "sluice-bench");
  app.set_version_flag(
      "--version", absl::StrCat("sluice-bench ", SLUICE_VERSION, " (", sluice::bench::BuiltWith(),
                                ")\nbuilt in: MPI, ", sluice::bench::GpuBuiltWith()));
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
  sluice::bench::SetHelp(
      &app,
      "scripts/mpirun.sh --oversubscribe -np 16 build/bin/sluice-bench reshard \\\n"
      "  --preset etha-3-no_partial",
      "sluice-bench COMMAND --help says more of each, and has an example.");
  absl::Status flags;
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0)
      return IsFirstProcess() ? app.exit(error) : sluice::bench::kGoodExit;
    if (sluice::bench::NamesNoCommand(app)) {
      if (IsFirstProcess()) std::cerr << sluice::bench::NoCommandText(app, argc, argv);
      return sluice::bench::kBadUsageExit;
    }
    flags = absl::InvalidArgumentError(error.what());
    options.json_file = stream_options.json_file = sluice::bench::FindJsonFile(argc, argv);
    shards_options.flags = flags;
    shards_options.json_file = options.json_file;
    checkpoint_options.json_file = doctor_options.json_file = options.json_file;
  }
  if (shards->parsed()) {
    // Under mpirun one process does it for all.
    return IsFirstProcess() ? sluice::bench::RunShards(shards_options) : sluice::bench::kGoodExit;
  }
  if (stream->parsed()) {
    if (flags.ok()) flags = sluice::bench::ParseStreamTexts(&stream_options);
    if (!StartMpi(&argc, &argv, stream_options.progress_thread != 0))
      return sluice::bench::kFailedExit;
    return sluice::bench::RunStream(stream_options, flags);
  }
  if (checkpoint->parsed()) {
    if (!StartMpi(&argc, &argv, checkpoint_options.progress_thread))
      return sluice::bench::kFailedExit;
    return sluice::bench::RunCheckpoint(checkpoint_options, flags);
  }
  if (doctor->parsed()) {
    // It asks for all threads, to say which of them MPI allows.
    if (!StartMpi(&argc, &argv, true)) return sluice::bench::kFailedExit;
    return sluice::bench::RunDoctor(doctor_options, flags);
  }
  if (flags.ok() && options.list_presets) {
    if (IsFirstProcess()) std::cout << sluice::bench::PresetListText();
    return sluice::bench::kGoodExit;
  }
  if (flags.ok()) flags = sluice::bench::ParseTexts(&options);
  if (options.plan_only) {
    // Under mpirun one process plans for all.
    return IsFirstProcess() ? sluice::bench::RunPlanOnly(options, flags) : sluice::bench::kGoodExit;
  }
  if (!StartMpi(&argc, &argv, options.progress_thread)) return sluice::bench::kFailedExit;
  return sluice::bench::RunReshard(options, flags);
}
