// Declaring and reading the flags.
#include "sync/options.h"

#include <CLI/CLI.hpp>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "job/flag_list.h"
#include "job/flags.h"
#include "job/help.h"
#include "sluice/status.h"
#include "workload/write_file.h"

namespace sluice::bench {
namespace {

void SetVariable(const char* name, const std::string& value) {
  if (!value.empty()) setenv(name, value.c_str(), 1);  // NOLINT: one thread
}

}  // namespace

void AddFlags(CLI::App* app, SyncOptions* o) {
  const char* run = "Run";
  AddFlags(app,
           FlagGroups{
               {"Who",
                {{"--role", &o->role, "which side this process is of [SLUICE_ROLE]",
                  OneOf({kTrainer, kServer})},
                 {"--world", &o->world,
                  "tcp://HOST:PORT where both sides meet. Trainer 0 serves the store there, if "
                  "HOST is its own and no sluice-store does [SLUICE_WORLD, or as launchers say]"},
                 {"--token-file", &o->token_file,
                  "file with the secret that both sides know; needed beyond 127.0.0.1 "
                  "[SLUICE_TOKEN_FILE, or the secret in SLUICE_TOKEN]"},
                 {"--rank", &o->rank, "of this process in its role [SLUICE_RANK, or launchers']",
                  Within(0, kUnbounded)},
                 {"--size", &o->size,
                  "how many its role has; of servers the most at once [SLUICE_SIZE, or launchers']",
                  Within(1, kUnbounded)}}},
               {"What",
                {{"--model", &o->model_file,
                  "model file: {name: {shape, dtype}}; or the name of one in share/sluice/models, "
                  "e.g. llama-3-8b"},
                 {"--system", &o->system_file,
                  "system file: how each side cuts the tensors, on as many ranks as there are; or "
                  "the name of one in share/sluice/systems [trainers cut dimension 0, each server "
                  "has all of every tensor]"},
                 {"--layers", &o->cut.layers, "keep the first N layers of the model"},
                 {"--scale", &o->cut.scale, "divide the dimensions of the model by K"},
                 {"--tensors", &o->tensors,
                  "in place of --model: N,ROWS,COLUMNS: so many tensors of this shape, bf16"},
                 {"--seed", &o->seed, "added to the element's index in the fill [0]"}}},
               {run,
                {{"--versions", &o->versions, "how many versions are synced [10]",
                  Within(1, 1099511627776)},
                 {"--at-least", &o->at_least,
                  "servers without which nothing is synced [all of --size before the first "
                  "version, then 1]",
                  Within(1, kUnbounded)},
                 {"--pause-ms", &o->pause_ms, "of trainer 0: time before each version [0]",
                  Within(0, 1e9)},
                 {"--progress-thread", &o->progress_thread, "a thread drives each session"},
                 {"-J,--json", &o->json_file,
                  "write the results here, also on failure; a file for each process"}}}});
  AddSeconds(app, "--timeout-s", &o->timeout_s,
             "seconds without progress after which a member counts as silent [30]")
      ->group(run);
  AddSeconds(app, "--wait-s", &o->wait_s,
             "seconds to wait for the store, and for members [for ever]")
      ->group(run);
  SetHelp(app,
          "build/bin/sluice-bench sync --role server --world tcp://127.0.0.1:29600 --rank 0 \\\n"
          "  --size 1 --tensors 8,512,512 --versions 3 &\n"
          "build/bin/sluice-bench sync --role trainer --world tcp://127.0.0.1:29600 --rank 0 \\\n"
          "  --size 1 --tensors 8,512,512 --versions 3; wait",
          "Both sides are started apart, in any order. Servers may be killed, and may join at any "
          "time.\nThe file of --tensors, --model and --system, --versions and --seed are equal on "
          "all.");
}

absl::Status CheckFlags(SyncOptions* o) {
  if (o->model_file.empty() == o->tensors.empty()) {
    return absl::InvalidArgumentError("give either --model or --tensors: what to sync");
  }
  if (o->model_file.empty() && (o->cut.layers != 0 || o->cut.scale != 1)) {
    return absl::InvalidArgumentError("--layers and --scale go with --model only");
  }
  return KeepApart(
      &o->json_file,
      {{"--model", o->model_file}, {"--system", o->system_file}, {"--token-file", o->token_file}});
}

absl::StatusOr<WorldOptions> WorldOptionsOf(const SyncOptions& o) {
  if (o.rank >= 0 && o.size > 0 && o.rank >= o.size) {
    return absl::InvalidArgumentError(
        absl::StrCat("--rank is ", o.rank, ", but --size is ", o.size));
  }
  SetVariable("SLUICE_WORLD", o.world);
  SetVariable("SLUICE_ROLE", o.role);
  if (o.rank >= 0) SetVariable("SLUICE_RANK", absl::StrCat(o.rank));
  if (o.size > 0) SetVariable("SLUICE_SIZE", absl::StrCat(o.size));
  if (!o.token_file.empty()) {
    SetVariable("SLUICE_TOKEN_FILE", o.token_file);
    unsetenv("SLUICE_TOKEN");  // NOLINT: one thread
  }
  setenv("SLUICE_ROLES", absl::StrCat(kTrainer, ",", kServer).c_str(), 0);  // NOLINT: one thread
  SLUICE_ASSIGN_OR_RETURN(WorldOptions world, WorldOptionsFromEnvironment());
  if (world.roles.size() != 2 || world.roles[0].role != kTrainer ||
      world.roles[1].role != kServer) {
    return absl::InvalidArgumentError("SLUICE_ROLES: the roles of sync are trainer,server");
  }
  if (o.wait_s > 0) world.timeout = o.wait();
  world.store_timeout = world.timeout;
  return world;
}

}  // namespace sluice::bench
