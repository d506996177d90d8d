// Declaring the flags.
#include "job/flags.h"

#include <CLI/CLI.hpp>
#include <limits>

#include "job/help.h"
#include "stream/options.h"

namespace sluice::bench {
namespace {

constexpr int64_t kMax64 = std::numeric_limits<int64_t>::max();

void AddSourceFlags(CLI::App* app, StreamBenchOptions* o) {
  const char* group = "Where items come from";
  app->add_option("--source", o->source,
                  "file:DIR (around the page cache), buffered:DIR, mmap:DIR, http://HOST/BASE/, "
                  "https://HOST/BASE/, or generator")
      ->required()
      ->group(group);
  app->add_option("--format", o->format,
                  "index: as index.json says, which `sluice-bench shards` writes; without one: "
                  "raw, npy or safetensors [index]")
      ->check(CLI::IsMember({"index", "raw", "npy", "safetensors"}))
      ->group(group);
  app->add_option("--item-bytes", o->item_bytes_text, "of raw and generator: bytes of an item")
      ->group(group);
  app->add_option("--items", o->items, "the first N items only; how many a generator makes")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40))
      ->group(group);
  app->add_option("--connections", o->connections, "most connections to an HTTP server [64]")
      ->check(CLI::Range(1, 4096))
      ->group(group);
  app->add_option("--ca-file", o->ca_file, "certificates to trust instead of the system's")
      ->group(group);
  app->add_option("--generate-ms", o->generate_ms, "how long the generator takes for an item [0]")
      ->check(CLI::Range(0.0, 1e6))
      ->group(group);
  app->add_option("--generate-order", o->generate_order,
                  "free: what can be made is; after-update: a batch is begun after the update with "
                  "the one before; one-ahead: it is made while that update is computed [free]")
      ->check(CLI::IsMember({"free", "after-update", "one-ahead"}))
      ->group(group);
  app->add_option("--generate-ahead", o->generate_ahead,
                  "of free: batches begun beyond the one that was taken last [1]")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40))
      ->group(group);
  app->add_option("--generator-threads", o->generator_threads,
                  "how many of a rank's threads make items at once [1]")
      ->check(CLI::Range(1, 256))
      ->group(group);
}

void AddInjectionFlags(CLI::App* app, StreamBenchOptions* o) {
  const char* group = "What is done to reads (follows from --seed, item and attempt)";
  app->add_option("--latency-ms", o->latency_ms, "least time of each read [0]")
      ->check(CLI::Range(0.0, 1e6))
      ->group(group);
  app->add_option("--jitter", o->jitter, "share of the latency on either side, uniform [0]")
      ->check(CLI::Range(0.0, 1.0))
      ->group(group);
  app->add_option("--tail-percent", o->tail_percent, "this share of reads is slow [0]")
      ->check(CLI::Range(0.0, 100.0))
      ->group(group);
  app->add_option("--tail-factor", o->tail_factor, "by this factor of the latency [10]")
      ->check(CLI::Range(0.0, 1e4))
      ->group(group);
  app->add_option("--fault", o->fault,
                  "e.g. transient:0.01,permanent:0.001,short:0.001,hang:0.001: probabilities")
      ->group(group);
  AddSwitch(app, "--read-ahead", &o->read_ahead,
            "of mmap: the kernel is told what is needed next [1]; 0: pages are read when the "
            "consumer touches them")
      ->group(group);
}

void AddKnobFlags(CLI::App* app, StreamBenchOptions* o) {
  const char* group = "Knobs";
  app->add_option("--budget-bytes", o->budget_bytes_text, "memory for what is read ahead [256M]")
      ->group(group);
  OrAuto(app->add_option("--slots", o->slots,
                         "most pieces at once [auto: as many as the budget holds]")
             ->check(CLI::Range(int64_t{0}, int64_t{1} << 20))
             ->group(group));
  OrAuto(app->add_option("--piece-bytes", o->piece_bytes_text,
                         "most bytes of one read [auto: 8M, or less]")
             ->group(group),
         "");
  app->add_option("--device-buffers", o->device_buffers, "batches in device memory [2]")
      ->check(CLI::Range(1, 1 << 20))
      ->group(group);
  app->add_option("--device", o->device_text,
                  "which memory they are: cpu, cuda, or emulated[:GB/S], a thread that copies so "
                  "fast at most [cpu]")
      ->group(group);
  app->add_option("--batch", o->batch, "items of a device buffer [1]")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 30))
      ->group(group);
  app->add_option("--order", o->order, "in: the epoch's; completed: as items come [in]")
      ->check(CLI::IsMember({"in", "completed"}))
      ->group(group);
  AddSwitch(app, "--hedge", &o->hedge, "slow reads are started once more")->group(group);
  AddSwitch(app, "--exchange", &o->exchange,
            "ranks that need the same item read it once between them [1]; 0: each for itself")
      ->group(group);
  app->add_option("--share", o->share,
                  "all: every rank gets all items; deal: each item goes to one rank [all with "
                  "--exchange 1, deal with --exchange 0]")
      ->check(CLI::IsMember({"all", "deal"}))
      ->group(group);
  app->add_option("--attempts", o->attempts, "most attempts at a read [4]")
      ->check(CLI::Range(1, 1000))
      ->group(group);
  AddSeconds(app, "--request-timeout-s", &o->request_timeout_s, "most time of one request [20]")
      ->group(group);
  app->add_option(
         "--transform", o->transform_text,
         "SRC:DST:SCALE:BIAS, such as u8:f32:0.0039:-0.5: what is done to elements; SRC:DST "
         "with the flags below, or for 1 and 0")
      ->group(group);
  app->add_option("--channel-scale", o->channel_scale_text,
                  "a,b,c: a scale for each channel, the last dimension of items")
      ->group(group);
  app->add_option("--channel-bias", o->channel_bias_text, "a,b,c: the same of biases")
      ->group(group);
  app->add_option("--item-shape", o->item_shape_text,
                  "HEIGHT,WIDTH,CHANNELS of items whose format does not say it")
      ->group(group);
  app->add_flag("--planar", o->planar, "the channels of such items become planes")->group(group);
  app->add_option("--crop", o->crop_text, "TOP,LEFT,HEIGHT,WIDTH: what is kept of such items")
      ->group(group);
  AddSwitch(app, "--progress-thread", &o->progress_thread,
            "a thread of the session's own drives the stream (MPI_THREAD_MULTIPLE)")
      ->group(group);
  AddFabric(app, &o->fabric)->group(group);
  AddSeconds(app, "--timeout-s", &o->timeout_s, "longest wait for an item or for ranks [60]")
      ->group(group);
}

void AddOrderFlags(CLI::App* app, StreamBenchOptions* o) {
  const char* group = "Which items";
  app->add_option("--epochs", o->epochs, "how often all items come [1]")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 30))
      ->group(group);
  AddSwitch(app, "--shuffle", &o->shuffle, "in an order that --seed and the epoch choose")
      ->group(group);
  app->add_option("--shuffle-block-items", o->shuffle_block_items,
                  "with --shuffle: shuffle blocks of N neighbours, and the items of each block, so "
                  "that reads stay long; a budget of two blocks or more [0: items singly]")
      ->check(CLI::Range(int64_t{0}, kMax64))
      ->group(group);
  app->add_option("--seed", o->seed, "of the order, and of injected latencies and faults [0]")
      ->group(group);
  app->add_option("--cursor", o->cursor,
                  "go on where another run stopped: what its results file says under \"cursor\"")
      ->group(group);
  app->add_option("--stop-items", o->stop_items,
                  "close the stream after N items of each rank [0: at its end]")
      ->check(CLI::Range(int64_t{0}, kMax64))
      ->group(group);
}

void AddRunFlags(CLI::App* app, StreamBenchOptions* o) {
  const char* group = "Run";
  app->add_option("--consume-us", o->consume_us, "how long the consumer computes with an item [0]")
      ->check(CLI::Range(0.0, 1e9))
      ->group(group);
  app->add_option("--baseline", o->baseline_texts,
                  "run this as well, in turns: warm (the same without --latency-ms), loop (of a "
                  "generator: make an item, consume it, make the next), serial (one "
                  "wave of the whole budget at a time), waves:8 (the budget in 8 slabs, of which "
                  "one is filled at a time) or threads:8x4 (8 workers, each up to 4 items ahead, "
                  "in order); repeat or separate by commas")
      ->delimiter(',')
      ->group(group);
  app->add_option("-n,--iters", o->iterations, "rounds of all modes; the median counts [1]")
      ->check(CLI::Range(1, 100000))
      ->group(group);
  AddCheck(
      app, "--check", [o](Check check) { o->check = check; },
      "all: every element; sample: 4 KiB of every 64, first and last; none: only which items come "
      "[all]. Counts as consuming")
      ->group(group);
  AddSwitch(app, "--touch", &o->touch,
            "the consumer reads a byte of each page, as whoever uses items does; with --check none")
      ->group(group);
  app->add_option("--fill-seed", o->fill_seed, "--seed that the shards were made with [0]")
      ->group(group);
  app->add_option("--corrupt", o->corrupt,
                  "negative control: flip a byte of the first N items of each rank, which must "
                  "then be found wrong")
      ->check(CLI::Range(int64_t{0}, kMax64))
      ->group(group);
  app->add_option("--grow", o->grow_text,
                  "negative control: have each rank take this much memory before it ends, which "
                  "must then fail if the budget does not allow it")
      ->group(group);
  app->add_option("--trace", o->trace_file,
                  "write the first round of sluice here, for ui.perfetto.dev or chrome://tracing")
      ->group(group);
  app->add_option("--trace-epochs", o->trace_epochs, "only the first N epochs of it; -1: all [5]")
      ->check(CLI::Range(int64_t{-1}, kMax64))
      ->group(group);
  app->add_option("--trace-events", o->trace_events, "most events of a rank in it [262144]")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 26))
      ->group(group);
  AddSwitch(app, "--csv", &o->csv,
            "comma separated values in place of the table, all else in lines that begin with #")
      ->group(group);
  app->add_option("-J,--json", o->json_file, "write the results here, also on failure")
      ->group(group);
}

}  // namespace

void AddStreamFlags(CLI::App* app, StreamBenchOptions* options) {
  AddSourceFlags(app, options);
  AddOrderFlags(app, options);
  AddInjectionFlags(app, options);
  AddKnobFlags(app, options);
  AddRunFlags(app, options);
  SetHelp(app,
          "build/bin/sluice-bench shards --make raw --dir /tmp/shards --items 64 --item-bytes 1M "
          "--force\n"
          "build/bin/sluice-bench stream --source buffered:/tmp/shards --latency-ms 5 \\\n"
          "  --budget-bytes 16M --baseline serial,threads:8x4",
          "Under scripts/mpirun.sh every rank gets all items; with --share deal each a part.");
}

}  // namespace sluice::bench
