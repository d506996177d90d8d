// The list of the flags.
#include <CLI/CLI.hpp>

#include "job/flag_list.h"
#include "job/help.h"
#include "session/stream/describe_stream.h"
#include "stream/options.h"

namespace sluice::bench {
namespace {

FlagGroup SourceFlags(StreamBenchOptions* o) {
  StreamSource& source = o->stream.source;
  return {
      "Where items come from",
      {{"--source", &o->source,
        "DIR or file:DIR (around the page cache), buffered:DIR, mmap:DIR, http://HOST/BASE/, "
        "https://HOST/BASE/, s3://BUCKET/PREFIX, or generator",
        Required()},
       {"--format", &o->format,
        "index: as index.json says, which `sluice-bench shards` writes; without one: "
        "raw, npy or safetensors [index]",
        OneOf({"index", "raw", "npy", "safetensors"})},
       {"--item-bytes", &source.item_bytes, "of raw and generator: bytes of an item", Bytes()},
       {"--items", &o->items, "the first N items only; how many a generator makes",
        Within(1, 1099511627776)},
       {"--connections", &source.connections, "most connections to an HTTP server [64]"},
       {"--ca-file", &source.ca_file, "certificates to trust instead of the system's", Private()},
       {"--s3-endpoint", &source.s3.endpoint, "https://HOST of s3: [AWS]", Private()},
       {"--s3-region", &source.s3.region, "of s3: [as AWS's tools have it]", Private()},
       {"--generate-ms", &o->generate_ms, "how long the generator takes for an item [0]",
        Within(0, 1e6)},
       {"--generate-order", &o->generate_order,
        "free: what can be made is; after-update: a batch is begun after the update with "
        "the one before; one-ahead: it is made while that update is computed [free]",
        OneOf({"free", "after-update", "one-ahead"})},
       {"--generate-ahead", &source.generate_ahead,
        "of free: batches begun beyond the one that was taken last [1]"},
       {"--generator-threads", &source.generator_threads,
        "how many of a rank's threads make items at once [1]"}}};
}

FlagGroup OrderFlags(StreamBenchOptions* o) {
  StreamOrder& order = o->stream.order;
  return {"Which items",
          {{"--epochs", &order.epochs, "how often all items come [1]"},
           {"--shuffle", &order.shuffle, "in an order that --seed and the epoch choose"},
           {"--shuffle-block-items", &order.shuffle_block_items,
            "with --shuffle: shuffle blocks of N neighbours, and the items of each block, so "
            "that reads stay long; a budget of two blocks or more [0: items singly]"},
           {"--seed", &order.seed, "of the order, and of injected latencies and faults [0]"},
           {"--cursor", &order.cursor,
            "go on where another run stopped: what its results file says under \"cursor\""},
           {"--stop-items", &o->stop_items,
            "close the stream after N items of each rank [0: at its end]", Within(0, kUnbounded)}}};
}

FlagGroup InjectionFlags(StreamBenchOptions* o) {
  return {
      "What is done to reads (follows from --seed, item and attempt)",
      {{"--latency-ms", &o->latency_ms, "least time of each read [0]", Within(0, 1e6)},
       {"--jitter", &o->jitter, "share of the latency on either side, uniform [0]", Within(0, 1)},
       {"--tail-percent", &o->tail_percent, "this share of reads is slow [0]", Within(0, 100)},
       {"--tail-factor", &o->tail_factor, "by this factor of the latency [10]", Within(0, 1e4)},
       {"--fault", &o->fault,
        "e.g. transient:0.01,permanent:0.001,short:0.001,hang:0.001: probabilities"},
       {"--read-ahead", &o->read_ahead,
        "of mmap: the kernel is told what is needed next [1]; 0: pages are read when the "
        "consumer touches them"}}};
}

FlagGroup KnobFlags(StreamBenchOptions* o) {
  StreamReads& reads = o->stream.reads;
  TransformFlags& transform = o->transform_flags;
  return {
      "Knobs",
      {{"--budget-bytes", &reads.budget_bytes, "memory for what is read ahead [256M]", Bytes()},
       {"--slots", &reads.slots, "most pieces at once [auto: as many as the budget holds]"},
       {"--piece-bytes", &reads.piece_bytes, "most bytes of one read [auto: 8M, or less]", Bytes()},
       {"--device-buffers", &o->stream.buffers.count, "batches in device memory [2]"},
       {"--device", &o->device_text,
        "which memory they are: cpu, cuda, or emulated[:GB/S], a thread that copies so "
        "fast at most [cpu]",
        Private()},
       {"--batch", &o->stream.buffers.batch_items, "items of a device buffer [1]"},
       {"--order", &o->order, "in: the epoch's; completed: as items come [in]",
        OneOf({"in", "completed"})},
       {"--hedge", &reads.hedge.enabled, "slow reads are started once more"},
       {"--exchange", &reads.exchange,
        "ranks that need the same item read it once between them [1]; 0: each for itself"},
       {"--share", &o->share,
        "all: every rank gets all items; deal: each item goes to one rank [all with "
        "--exchange 1, deal with --exchange 0]",
        OneOf({"all", "deal"})},
       {"--attempts", &reads.retry.attempts_max, "most attempts at a read [4]"},
       {"--request-timeout-s", &reads.retry.request_timeout, "most time of one request [20]"},
       {"--transform", &transform.types,
        "SRC:DST:SCALE:BIAS, such as u8:f32:0.0039:-0.5: what is done to elements; SRC:DST "
        "with the flags below, or for 1 and 0",
        Private()},
       {"--channel-scale", &transform.channel_scale,
        "a,b,c: a scale for each channel, the last dimension of items", Private()},
       {"--channel-bias", &transform.channel_bias, "a,b,c: the same of biases", Private()},
       {"--item-shape", &transform.item_shape,
        "HEIGHT,WIDTH,CHANNELS of items whose format does not say it", Private()},
       {"--planar", &transform.planar, "the channels of such items become planes", Private()},
       {"--crop", &transform.crop, "TOP,LEFT,HEIGHT,WIDTH: what is kept of such items", Private()},
       {"--progress-thread", &o->progress_thread,
        "a thread of the session's own drives the stream (MPI_THREAD_MULTIPLE)"},
       {"--timeout-s", &o->stream.timeout, "longest wait for an item or for ranks [60]"}}};
}

FlagGroup RunFlags(StreamBenchOptions* o) {
  return {
      "Run",
      {{"--consume-us", &o->consume_us, "how long the consumer computes with an item [0]",
        Within(0, 1e9)},
       {"--baseline", &o->baseline_texts,
        "run this as well, in turns: warm (the same without --latency-ms), loop (of a "
        "generator: make an item, consume it, make the next), serial (one "
        "wave of the whole budget at a time), waves:8 (the budget in 8 slabs, of which "
        "one is filled at a time) or threads:8x4 (8 workers, each up to 4 items ahead, "
        "in order); repeat or separate by commas",
        Private()},
       {"-n,--iters", &o->iterations, "rounds of all modes; the median counts [1]",
        Within(1, 100000)},
       {"--touch", &o->touch,
        "the consumer reads a byte of each page, as whoever uses items does; with --check none"},
       {"--fill-seed", &o->fill_seed, "--seed that the shards were made with [0]"},
       {"--corrupt", &o->corrupt,
        "negative control: flip a byte of the first N items of each rank, which must "
        "then be found wrong",
        Within(0, kUnbounded)},
       {"--grow", &o->grow_bytes,
        "negative control: have each rank take this much memory before it ends, which "
        "must then fail if the budget does not allow it",
        Bytes()},
       {"--trace", &o->trace_file,
        "write the first round of sluice here, for ui.perfetto.dev or chrome://tracing", Private()},
       {"--trace-epochs", &o->trace_epochs, "only the first N epochs of it; -1: all [5]",
        Private(Within(-1, kUnbounded))},
       {"--trace-events", &o->trace_events, "most events of a rank in it [262144]",
        Private(Within(1, 1 << 26))},
       {"--csv", &o->csv,
        "comma separated values in place of the table, all else in lines that begin with #",
        Private()},
       {"-J,--json", &o->json_file, "write the results here, also on failure", Private()}}};
}

}  // namespace

FlagGroups StreamFlags(StreamBenchOptions* options) {
  return {SourceFlags(options), OrderFlags(options), InjectionFlags(options), KnobFlags(options),
          RunFlags(options)};
}

void AddStreamFlags(CLI::App* app, StreamBenchOptions* options) {
  FlagGroups groups = StreamFlags(options);
  const FlagRanges<StreamOptions> ranges(&options->stream, &groups);
  AddFlags(app, groups);
  AddFabric(app, &options->fabric)->group("Knobs");
  AddCheck(
      app, "--check", [options](Check check) { options->check = check; },
      "all: every element; sample: 4 KiB of every 64, first and last; none: only which items come "
      "[all]. Counts as consuming")
      ->group("Run");
  SetHelp(app,
          "build/bin/sluice-bench shards --make raw --dir /tmp/shards --items 64 --item-bytes 1M "
          "--force\n"
          "build/bin/sluice-bench stream --source buffered:/tmp/shards --latency-ms 5 \\\n"
          "  --budget-bytes 16M --baseline serial,threads:8x4",
          "Under scripts/mpirun.sh every rank gets all items; with --share deal each a part.",
          {"source", "format", "item-bytes", "items", "epochs", "shuffle", "seed", "cursor",
           "budget-bytes", "device", "batch", "share", "transform", "consume-us", "baseline",
           "iters", "check", "json"});
}

}  // namespace sluice::bench
