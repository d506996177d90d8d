// Declaring and reading the flags.
#include "checkpoint/options.h"

#include <CLI/CLI.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "job/help.h"
#include "session/checkpoint/describe_checkpoint.h"

namespace sluice::bench {

FlagGroups CheckpointFlags(CheckpointBenchOptions* o) {
  CheckpointOptions& call = o->call;
  return {{"What",
           {{"--path", &o->path,
             "directory, or file:DIR, buffered:DIR, mmap:DIR, http://HOST/BASE/, https://.., "
             "s3://BUCKET/PREFIX; a "
             "directory is read past the page cache",
             Required()},
            {"--layout", &o->layout,
             "to load into, MESH@RANKS:PLACEMENTS, e.g. '2,4@0-7:R,S(0)'; without @RANKS on "
             "ranks from 0 on; a tensor without the dimension that is cut is replicated "
             "[N:S(0), N: all ranks]"},
            {"--make", &o->make, "write the checkpoint first, then load it"},
            {"--save-layout", &o->save_layout, "to save from [as --layout]"},
            {"--shape", &o->shape, "of the tensors, e.g. 4096,4096 [those of the checkpoint]"},
            {"--dtype", &o->dtype, "of the tensors [f32]"},
            {"--tensors", &o->tensors, "so many [1]", Within(1, kUnbounded)},
            {"--model", &o->model_file,
             "model file: {name: {shape, dtype}}; or the name of one in share/sluice/models. "
             "Without --system its tensors lie as --layout says"},
            {"--system", &o->system_file,
             "system file: saved as it trains, loaded as it generates; bench/systems has some"},
            {"--layers", &o->cut.layers, "keep the first N layers of the model"},
            {"--scale", &o->cut.scale, "divide the dimensions of the model by K"}}},
          {"Knobs",
           {{"--budget-bytes", &call.budget_bytes, "staging of a rank [256M]", Bytes()},
            {"--slots", &call.slots, "most pieces at once [auto: as many as the budget holds]"},
            {"--piece-bytes", &call.piece_bytes, "most bytes of one read or message [8M]", Bytes()},
            {"--shard-bytes", &call.shard_bytes_max, "most bytes of a file that is written [5G]",
             Bytes()},
            {"--ca-file", &call.ca_file, "certificates to trust [the system's]", Private()},
            {"--s3-endpoint", &call.s3.endpoint, "https://HOST of s3: [AWS]", Private()},
            {"--s3-region", &call.s3.region, "of s3: [as AWS's tools have it]", Private()},
            {"--progress-thread", &o->progress_thread, "a thread drives each session"},
            {"--timeout-s", &call.timeout, "seconds without progress that end the run [60]"}}},
          {"Run",
           {{"-n,--iters", &o->iterations, "loads, and with --make saves [1]", Within(1, 1000000)},
            {"-w,--warmup", &o->warmup, "loads before them, which are not timed [0]",
             Within(0, 1000000)},
            {"--baseline", &o->baselines,
             "load this way as well, in turns: mmap (each rank maps all files, and copies "
             "its own parts)",
             Private(OneOf({"mmap"}))},
            {"--cold", &o->cold,
             "put the files out of the page cache before each load, whichever way it goes"},
            {"--new-memory", &o->new_memory,
             "load into memory that has not been touched, as a program does that starts; otherwise "
             "into memory that is there"},
            {"--seed", &o->seed, "added to the element's index in the fill [0]", Private()},
            {"-J,--json", &o->json_file, "write the results here, also on failure", Private()}}}};
}

void AddFlags(CLI::App* app, CheckpointBenchOptions* o) {
  FlagGroups groups = CheckpointFlags(o);
  const FlagRanges<CheckpointOptions> ranges(&o->call, &groups);
  AddFlags(app, groups);
  AddFabric(app, &o->fabric)->group("Knobs");
  AddCheck(
      app, "--check", [o](Check check) { o->check = check; },
      "what is verified: no element, 4 KiB of every 64 (and the last), or all [all with --make, "
      "otherwise none]; only of checkpoints that this command wrote. 0 and 1 are none and all")
      ->group("Run");
  SetHelp(app,
          "mkdir -p /tmp/checkpoint\n"
          "scripts/mpirun.sh --oversubscribe -np 4 build/bin/sluice-bench checkpoint --make \\\n"
          "  --path buffered:/tmp/checkpoint --shape 1024,1024 --tensors 8 \\\n"
          "  --save-layout '4:S(0)' --layout '2,2:R,S(1)'",
          "",
          {"path", "layout", "make", "save-layout", "shape", "dtype", "tensors", "model", "system",
           "scale", "budget-bytes", "iters", "baseline", "cold", "check", "json"});
}

FlagConfig Config(const CheckpointBenchOptions& options) {
  CheckpointBenchOptions o = options;
  FlagConfig config = ConfigOf(CheckpointFlags(&o));
  config.emplace_back("baselines", o.baselines);
  config.emplace_back("check", static_cast<int>(o.check_or_default()));
  config.emplace_back("fill_seed", o.seed);
  return config;
}

std::string UriOf(const CheckpointBenchOptions& options) {
  for (const char* scheme : {"file:", "buffered:", "mmap:", "http:", "https:", "s3:"}) {
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
  if (o.cold && !DirectoryOf(o).ok()) return absl::InvalidArgumentError("--cold needs a directory");
  return absl::OkStatus();
}

std::string DefaultLayoutText(int ranks) { return absl::StrCat(ranks, ":S(0)"); }

}  // namespace sluice::bench
