// Declaring the flags.
#include "job/flags.h"

#include <CLI/CLI.hpp>
#include <limits>
#include <string>
#include <vector>

#include "job/flag_list.h"
#include "job/help.h"
#include "reshard/baselines/baseline.h"
#include "reshard/lanes.h"
#include "reshard/options.h"

namespace sluice::bench {
namespace {

void AddKnobFlags(CLI::App* app, Options* o) {
  constexpr int kMax = std::numeric_limits<int>::max();
  const char* knobs = "Knobs";
  const std::vector<std::string> plans = {"relay", "naive"};
  AddFlags(
      app,
      FlagGroups{
          {knobs,
           {{"--bucket-bytes", &o->bucket_bytes,
             "most bytes of a bucket [auto: what suits the case]", Bytes()},
            {"--max-in-flight", &o->max_in_flight, "most buckets of a channel at once [auto]",
             Within(0, kMax)},
            {"--budget-buckets", &o->budget_buckets,
             "most buckets of a rank at once [16]; 0: no limit"},
            {"--budget-bytes", &o->budget_bytes_text,
             "most staging bytes of a rank at once [auto: 16 of the largest buckets]; 0: no limit"},
            {"--compare-budgets", &o->compare_budgets,
             "run every case with each of these budgets of buckets, interleaved, e.g. 0,8",
             Within(0, kUnbounded)},
            {"--compare-transports", &o->compare_transports,
             "the same with each of these transports, e.g. direct,mpi", OneOf({"mpi", "direct"})},
            {"--plan", &o->plan,
             "relay: bytes that several ranks of a node need cross once and are handed on; naive: "
             "each rank gets them from one that holds them [relay]",
             OneOf(plans)},
            {"--compare-plans", &o->compare_plans,
             "run every case with each of these plans, interleaved, e.g. relay,naive",
             OneOf(plans)},
            {"--no-coalesce", &o->no_coalesce,
             "small chunks do not join: each chunk is a bucket of its own"},
            {"--compare-coalesce", &o->compare_coalesce,
             "run every case with chunks joined (on) and not (off), interleaved: on,off",
             OneOf({"on", "off"})},
            {"--compare-bucket-bytes",
             &o->compare_bucket_bytes,
             "the same with each of these sizes of buckets, e.g. auto,1M,8M",
             {.is_bytes = true, .may_be_auto = true}},
            {"--compare-max-in-flight",
             &o->compare_max_in_flight,
             "the same with each of these numbers of buckets, e.g. auto,1,2",
             {.min = 0, .max = kMax, .may_be_auto = true}},
            {"--baseline", &o->baselines,
             "run these as well, in turns, and compare: serial (one chunk at a time), isend (a "
             "message per chunk, all at once), isend-packed (chunks joined by peer, unpacked as "
             "they arrive), alltoallw, gather-broadcast, mpi-collective (MPI_Allgather and the "
             "like, of --collective); memcpy-own: each rank writes its targets from a copy of its "
             "own; bound: what all cores of the node can do, each byte of the targets written "
             "once",
             OneOf(BaselineNames())},
            {"--windowed", &o->windowed,
             "give targets their memory N tensors at a time, check it and take it back when they "
             "are done [0: all from the start]",
             Within(0, kMaxWindow)},
            {"--progress-thread", &o->progress_thread,
             "a thread of each session's own drives its transfers (MPI_THREAD_MULTIPLE)"},
            {"--memory", &o->memory,
             "tensors in host memory: private (your own, as a trainer has it) or shared (that "
             "Sluice allocated, mapped by the node's ranks) [private]",
             OneOf({"private", "shared"})}}}});
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
             "the index's low 32 bits, as checksums of --fingerprint need it [hash]",
             OneOf({"hash", "plain"})},
            {"--fingerprint", &o->fingerprint, "report checksums of every target rank"},
            {"--corrupt", &o->corrupt_bytes,
             "negative control: flip N bytes after the run, which must then fail", Bytes()},
            {"--grow", &o->grow_bytes,
             "negative control: have each rank take this much memory in the last run, which must "
             "then fail if no budget allows it",
             Bytes()},
            {"--format", &o->format,
             "table; osu: size, MB/s, messages/s and case; or csv: comma separated values, all "
             "else in lines that begin with # [table]",
             OneOf({"table", "osu", "csv"})},
            {"--csv", &o->csv, "the same as --format csv"},
            {"--wide", &o->wide, "a table with all columns, more than 100 characters wide"},
            {"--trace", &o->trace_file,
             "write the timed iterations here, for ui.perfetto.dev or chrome://tracing; with "
             "--compare-budgets those of the first budget. --json then has what was in flight, for "
             "`report`"},
            {"--trace-events", &o->trace_events, "most events of a rank in it [16384]",
             Within(1, 1 << 26)},
            {"--plan-only", &o->plan_only,
             "move nothing: print what the plans of all ranks come to between nodes (no mpirun "
             "needed)"},
            {"-J,--json", &o->json_file, "write the results here, also on failure"}}}});
  AddCheck(
      app, "-c,--check", [o](Check check) { o->check = check; },
      "what is verified after every iteration: no element, 4 KiB of every 64 (and the last), or "
      "all [all]; 0 and 1 are none and all")
      ->group(run);
}

void AddGpuFlags(CLI::App* app, GpuOptions* o) {
  const char* group = "GPU";
  const FlagMore devices = OneOf({"cpu", "cuda"});
  AddFlags(
      app,
      FlagGroups{
          {group,
           {{"--device", &o->device, "memory of both sides: cpu or cuda [cpu]", devices},
            {"--src-device", &o->src_device, "memory of the sources [as --device]", devices},
            {"--dst-device", &o->dst_device, "memory of the targets [as --device]", devices},
            {"--transport", &o->transport_text,
             "direct (one copy between ranks of a node, mpi between nodes; host memory), mpi "
             "(device memory: through pinned memory), nccl, or cuda_ipc (ranks of one node) "
             "[direct for host memory, otherwise mpi]",
             OneOf({"direct", "mpi", "nccl", "cuda_ipc"})},
            {"--max-channels-per-peer", &o->max_channels_per_peer,
             "most channels of NCCL to one rank: each takes memory [NCCL's choice]", Within(1, 64)},
            {"--min-ctas", &o->min_ctas, "least thread blocks of an NCCL kernel", Within(1, 64)},
            {"--max-ctas", &o->max_ctas, "most thread blocks of an NCCL kernel", Within(1, 64)},
            {"--register-staging", &o->register_staging,
             "stage every bucket in memory that NCCL registers [straight from and into "
             "tensors]"}}}});
  OrAuto(app->add_option("--gpu", o->ordinal,
                         "number of this rank's device [auto: its place on the host]")
             ->check(CLI::Range(-1, 1023))
             ->group(group),
         "-1");
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
      "    --shape 512 --tensors 1250 --src '8:S(0)' --dst '8@8-15:S(0)' --baseline isend,serial",
      {"preset", "model", "system", "scale", "collective", "shape", "dtype", "src", "dst",
       "minbytes", "maxbytes", "iters", "check", "budget-buckets", "compare-budgets", "baseline",
       "json"});
}

}  // namespace sluice::bench
