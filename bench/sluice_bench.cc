// sluice-bench: measures and checks Sluice under mpirun.
#include <mpi.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "reshard/built_with.h"
#include "reshard/options.h"
#include "reshard/reshard.h"

namespace {

// Before MPI is initialised, only the launcher's environment tells which process is to print.
bool IsFirstProcess() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"}) {
    const char* rank = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): one thread yet
    if (rank != nullptr) return std::strcmp(rank, "0") == 0;
  }
  return true;
}

// The results file that was asked for, also where the flags around it cannot be parsed.
std::string FindJsonFile(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const absl::string_view arg = argv[i];
    if ((arg == "-J" || arg == "--json") && i + 1 < argc) return argv[i + 1];
    if (absl::StartsWith(arg, "--json=")) return absl::StrCat(arg.substr(7));
  }
  return "";
}

int StartMpi(int* argc, char*** argv) {
  int provided = 0;
  return MPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, &provided);
}

}  // namespace

int main(int argc, char** argv) {
  sluice::bench::Options options;
  CLI::App app("Moves tensors between meshes of ranks under mpirun, times and checks it.");
  app.set_version_flag("--version", absl::StrCat("sluice-bench ", SLUICE_VERSION, " (",
                                                 sluice::bench::BuiltWith(), ")"));
  app.require_subcommand(1);
  CLI::App* reshard = app.add_subcommand("reshard", "redistribute tensors between two layouts");
  sluice::bench::AddFlags(reshard, &options);
  absl::Status flags;
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return IsFirstProcess() ? app.exit(error) : EXIT_SUCCESS;
    flags = absl::InvalidArgumentError(error.what());
    options.json_file = FindJsonFile(argc, argv);
  }
  if (flags.ok()) flags = sluice::bench::ParseTexts(&options);
  if (StartMpi(&argc, &argv) != MPI_SUCCESS) return EXIT_FAILURE;
  return sluice::bench::RunReshard(options, flags);
}
