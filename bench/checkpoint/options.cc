// Declaring and reading the flags.
#include "checkpoint/options.h"

#include <CLI/CLI.hpp>
#include <limits>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "job/help.h"
#include "workload/json_input.h"
#include "workload/numbers.h"

namespace sluice::bench {

void AddFlags(CLI::App* app, CheckpointBenchOptions* o) {
  constexpr int kMax = std::numeric_limits<int>::max();
  const char* what = "What";
  app->add_option(
         "--path", o->path,
         "directory, or file:DIR, buffered:DIR, mmap:DIR, http://HOST/BASE/, https://..; a "
         "directory is read past the page cache")
      ->required()
      ->group(what);
  app->add_option("--layout", o->layout,
                  "to load into, MESH@RANKS:PLACEMENTS, e.g. '2,4@0-7:R,S(0)'; without @RANKS on "
                  "ranks from 0 on; a tensor without the dimension that is cut is replicated "
                  "[N:S(0), N: all ranks]")
      ->group(what);
  AddSwitch(app, "--make", &o->make, "write the checkpoint first, then load it")->group(what);
  app->add_option("--save-layout", o->save_layout, "to save from [as --layout]")->group(what);
  app->add_option("--shape", o->shape, "of the tensors, e.g. 4096,4096 [those of the checkpoint]")
      ->group(what);
  app->add_option("--dtype", o->dtype, "of the tensors [f32]")->group(what);
  app->add_option("--tensors", o->tensors, "so many [1]")->check(CLI::Range(1, kMax))->group(what);
  app->add_option("--model", o->model_file,
                  "model file: {name: {shape, dtype}}; or the name of one in share/sluice/models. "
                  "Without --system its tensors lie as --layout says")
      ->group(what);
  app->add_option("--system", o->system_file,
                  "system file: saved as it trains, loaded as it generates; bench/systems has some")
      ->group(what);
  app->add_option("--layers", o->cut.layers, "keep the first N layers of the model")->group(what);
  app->add_option("--scale", o->cut.scale, "divide the dimensions of the model by K")->group(what);
  const char* knobs = "Knobs";
  app->add_option("--budget-bytes", o->budget_bytes, "staging of a rank [256M]")->group(knobs);
  OrAuto(app->add_option("--slots", o->slots,
                         "most pieces at once [auto: as many as the budget holds]")
             ->group(knobs));
  app->add_option("--piece-bytes", o->piece_bytes, "most bytes of one read or message [8M]")
      ->group(knobs);
  app->add_option("--shard-bytes", o->shard_bytes, "most bytes of a file that is written [5G]")
      ->group(knobs);
  app->add_option("--ca-file", o->ca_file, "certificates to trust [the system's]")->group(knobs);
  AddSwitch(app, "--progress-thread", &o->progress_thread, "a thread drives each session")
      ->group(knobs);
  AddFabric(app, &o->fabric)->group(knobs);
  AddSeconds(app, "--timeout-s", &o->timeout_s, "seconds without progress that end the run [60]")
      ->group(knobs);
  const char* run = "Run";
  app->add_option("-n,--iters", o->iterations, "loads, and with --make saves [1]")
      ->check(CLI::Range(1, 1000000))
      ->group(run);
  app->add_option("-w,--warmup", o->warmup, "loads before them, which are not timed [0]")
      ->check(CLI::Range(0, 1000000))
      ->group(run);
  app->add_option("--baseline", o->baselines,
                  "load this way as well, in turns: mmap (each rank maps all files, and copies "
                  "its own parts)")
      ->delimiter(',')
      ->check(CLI::IsMember({"mmap"}))
      ->group(run);
  AddSwitch(app, "--cold", &o->cold,
            "put the files out of the page cache before each load, whichever way it goes")
      ->group(run);
  AddSwitch(app, "--new-memory", &o->new_memory,
            "load into memory that has not been touched, as a program does that starts; otherwise "
            "into memory that is there")
      ->group(run);
  AddCheck(
      app, "--check", [o](Check check) { o->check = check; },
      "what is verified: no element, 4 KiB of every 64 (and the last), or all [all with --make, "
      "otherwise none]; only of checkpoints that this command wrote. 0 and 1 are none and all")
      ->group(run);
  app->add_option("--seed", o->seed, "added to the element's index in the fill [0]")->group(run);
  app->add_option("-J,--json", o->json_file, "write the results here, also on failure")->group(run);
  SetHelp(app,
          "mkdir -p /tmp/checkpoint\n"
          "scripts/mpirun.sh --oversubscribe -np 4 build/bin/sluice-bench checkpoint --make \\\n"
          "  --path buffered:/tmp/checkpoint --shape 1024,1024 --tensors 8 \\\n"
          "  --save-layout '4:S(0)' --layout '2,2:R,S(1)'");
}

absl::StatusOr<CheckpointOptions> CallOptionsOf(const CheckpointBenchOptions& o) {
  CheckpointOptions call;
  struct Size {
    const char* flag;
    const std::string* text;
    int64_t* bytes;
  };
  for (const Size& size : {Size{"--budget-bytes", &o.budget_bytes, &call.budget_bytes},
                           Size{"--piece-bytes", &o.piece_bytes, &call.piece_bytes},
                           Size{"--shard-bytes", &o.shard_bytes, &call.shard_bytes_max}}) {
    const absl::StatusOr<int64_t> bytes = ParseBytes(*size.text);
    if (!bytes.ok()) return Prefixed(size.flag, bytes.status());
    *size.bytes = *bytes;
  }
  if (o.slots != 0) call.slots = o.slots;
  call.ca_file = o.ca_file;
  call.timeout = absl::Seconds(o.timeout_s);
  return call;
}

std::string UriOf(const CheckpointBenchOptions& options) {
  for (const char* scheme : {"file:", "buffered:", "mmap:", "http:", "https:"}) {
    if (absl::StartsWith(options.path, scheme)) return options.path;
  }
  return absl::StrCat("file:", options.path);
}

absl::StatusOr<std::string> DirectoryOf(const CheckpointBenchOptions& options) {
  const std::string uri = UriOf(options);
  absl::string_view place = uri;
  for (const char* scheme : {"file:", "buffered:", "mmap:"}) {
    if (!absl::ConsumePrefix(&place, scheme)) continue;
    if (absl::StartsWith(place, "///")) place.remove_prefix(2);
    return std::string(place);
  }
  return absl::InvalidArgumentError(absl::StrCat("--path ", uri, " is no directory"));
}

absl::Status CheckFlags(const CheckpointBenchOptions& o) {
  if (!o.baselines.empty() && !DirectoryOf(o).ok()) {
    return absl::InvalidArgumentError("--baseline needs a directory");
  }
  if (o.cold && !DirectoryOf(o).ok()) {
    return absl::InvalidArgumentError("--cold needs a directory");
  }
  return absl::OkStatus();
}

std::string DefaultLayoutText(int ranks) { return absl::StrCat(ranks, ":S(0)"); }

}  // namespace sluice::bench
