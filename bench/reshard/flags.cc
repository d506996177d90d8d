// Declaring the flags.
#include "job/flags.h"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <limits>

#include "job/flag_list.h"
#include "job/help.h"
#include "reshard/lanes.h"
#include "reshard/options.h"

namespace sluice::bench {
namespace {

void AddKnobFlags(CLI::App* app, Options* o) {
  constexpr int kMax = std::numeric_limits<int>::max();
  const char* knobs = "Knobs";
  AddFlags(
      app,
      FlagGroups{
          {knobs,
           {{"--bucket-bytes", &o->bucket_bytes_text,
             "most bytes of a bucket [auto: what suits the case]"},
            {"--max-in-flight", &o->max_in_flight_text, "most buckets of a channel at once [auto]"},
            {"--budget-buckets", &o->budget_buckets,
             "most buckets of a rank at once [16]; 0: no limit"},
            {"--budget-bytes", &o->budget_bytes_text,
             "most staging bytes of a rank at once [auto: 16 of the largest buckets]; 0: no limit"},
            {"--compare-budgets", &o->compare_budgets_text,
             "run every case with each of these budgets of buckets, interleaved, e.g. 0,8"},
            {"--compare-transports", &o->compare_transports_text,
             "the same with each of these transports, e.g. direct,mpi"},
            {"--plan", &o->plan,
             "relay: bytes that several ranks of a node need cross once and are handed on; naive: "
             "each rank gets them from one that holds them [relay]"},
            {"--compare-plans", &o->compare_plans_text,
             "run every case with each of these plans, interleaved, e.g. relay,naive"},
            {"--no-coalesce", &o->no_coalesce,
             "small chunks do not join: each chunk is a bucket of its own"},
            {"--compare-coalesce", &o->compare_coalesce_text,
             "run every case with chunks joined (on) and not (off), interleaved: on,off"},
            {"--compare-bucket-bytes", &o->compare_bucket_bytes_text,
             "the same with each of these sizes of buckets, e.g. auto,1M,8M"},
            {"--compare-max-in-flight", &o->compare_max_in_flight_text,
             "the same with each of these numbers of buckets, e.g. auto,1,2"},
            {"--baseline", &o->baselines_text,
             "run these as well, in turns, and compare: serial (one chunk at a time), isend (a "
             "message per chunk, all at once), isend-packed (chunks joined by peer, unpacked as "
             "they arrive), alltoallw, gather-broadcast, mpi-collective (MPI_Allgather and the "
             "like, of --collective); memcpy-own: each rank writes its targets from a copy of its "
             "own; bound: what all cores of the node can do, each byte of the targets written "
             "once"},
            {"--windowed", &o->windowed,
             "give targets their memory N tensors at a time, check it and take it back when they "
             "are done [0: all from the start]",
             Within(0, kMaxWindow)},
            {"--progress-thread", &o->progress_thread,
             "a thread of each session's own drives its transfers (MPI_THREAD_MULTIPLE)"},
            {"--memory", &o->memory,
             "tensors in host memory: private (your own, as a trainer has it) or shared (that "
             "Sluice allocated, mapped by the node's ranks) [private]"}}}});
  OrAuto(app->add_option("--ranks-per-node", o->ranks_per_node,
                         "plan as if every N ranks were a node [auto: by host name]")
             ->check(CLI::Range(0, kMax))
             ->group(knobs));
  AddFabric(app, &o->fabric)->group(knobs);
  AddSeconds(app, "--timeout-s", &o->timeout_s, "seconds without progress that end the run [30]")
      ->group(knobs);
}

void AddRunFlags(CLI::App* app, Options* o) {
  constexpr int kMaxIterations = 1000000;
  const char* run = "Run";
  AddFlags(
      app,
      FlagGroups{
          {run,
           {{"-n,--iters", &o->iterations, "timed iterations [10]", Within(1, kMaxIterations)},
            {"-w,--warmup", &o->warmup, "iterations before them [1]", Within(0, kMaxIterations)},
            {"--seed", &o->seed, "added to the element's index in the fill [0]"},
            {"--fill", &o->fill,
             "hash: values depend on the tensor's name and all of an element's index; plain: on "
             "the index's low 32 bits, as checksums of --fingerprint need it [hash]"},
            {"--fingerprint", &o->fingerprint, "report checksums of every target rank"},
            {"--corrupt", &o->corrupt_text,
             "negative control: flip N bytes after the run, which must then fail"},
            {"--grow", &o->grow_text,
             "negative control: have each rank take this much memory in the last run, which must "
             "then fail if no budget allows it"},
            {"--format", &o->format,
             "table; osu: size, MB/s, messages/s and case; or csv: comma separated values, all "
             "else in lines that begin with # [table]"},
            {"--csv", &o->csv, "the same as --format csv"},
            {"--trace", &o->trace_file,
             "write the timed iterations here, for ui.perfetto.dev or chrome://tracing; with "
             "--compare-budgets those of the first budget"},
            {"--trace-events", &o->trace_events, "most events of a rank in it [16384]",
             Within(1, 1 << 26)},
            {"--plan-only", &o->plan_only,
             "move nothing: print what the plans of all ranks come to between nodes (no mpirun "
             "needed)"},
            {"-J,--json", &o->json_file, "write the results here, also on failure"}}}});
  AddCheck(
      app, "--check", [o](Check check) { o->check = check; },
      "what is verified after every iteration: no element, 4 KiB of every 64 (and the last), or "
      "all [all]; 0 and 1 are none and all")
      ->group(run);
}

}  // namespace

void AddFlags(CLI::App* app, Options* options) {
  AddWorkloadFlags(app, options);
  AddKnobFlags(app, options);
  AddRunFlags(app, options);
  AddGpuFlags(app, &options->gpu);
  SetHelp(
      app,
      "scripts/mpirun.sh --oversubscribe -np 4 build/bin/sluice-bench reshard \\\n"
      "  --shape 4096,1024 --src '4:S(0)' --dst '2,2:R,S(1)'",
      "Many small chunks: 1250 tensors of 8 x 256 B, against one message per chunk:\n"
      "  scripts/mpirun.sh --oversubscribe -np 16 build/bin/sluice-bench reshard \\\n"
      "    --shape 512 --tensors 1250 --src '8:S(0)' --dst '8@8-15:S(0)' --baseline isend,serial");
}

}  // namespace sluice::bench
