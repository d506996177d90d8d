// The flags of `sluice-bench stream`: their names are an interface.
#ifndef SLUICE_BENCH_STREAM_OPTIONS_H_
#define SLUICE_BENCH_STREAM_OPTIONS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "job/flags.h"
#include "sluice/stream.h"
#include "sluice/testing.h"
#include "stream/mode.h"
#include "stream/transform_flags.h"

namespace CLI {
class App;
}

namespace sluice::bench {

struct StreamBenchOptions {
  std::string source;
  std::string format = "index";
  int64_t items = 0;  // 0: all of the source
  int connections = 64;
  std::string ca_file;
  double generate_ms = 0;
  std::string generate_order;  // empty: free
  int64_t generate_ahead = 1;
  int generator_threads = 1;

  double latency_ms = 0;
  double jitter = 0;
  double tail_percent = 0;
  double tail_factor = 10;
  std::string fault;
  int read_ahead = 1;

  int64_t slots = 0;
  int device_buffers = 2;
  std::string device = "cpu";  // or cuda, or emulated: where these are
  double device_gb_per_s = 0;  // of an emulated one; 0: no limit
  int64_t batch = 1;
  std::string order = "in";
  int hedge = 0;
  int exchange = 1;
  std::string share;  // empty: "all" with an exchange, "deal" without
  int attempts = 4;
  double request_timeout_s = 20;

  int64_t epochs = 1;
  bool shuffle = false;
  int64_t shuffle_block_items = 0;  // 0: items singly
  uint64_t seed = 0;
  std::string cursor;
  int64_t stop_items = 0;  // of each rank; 0: at the end

  double consume_us = 0;
  Check check = Check::kAll;
  int touch = 0;
  uint64_t fill_seed = 0;
  int64_t corrupt = 0;
  int64_t grow_bytes = 0;

  int progress_thread = 0;
  std::string fabric = "auto";  // as AddFabric
  double timeout_s = 60;
  int iterations = 1;
  std::string trace_file;
  absl::optional<int64_t> trace_epochs;  // -1: all
  int64_t trace_events = 262144;         // per rank
  std::string json_file;
  bool csv = false;

  // As they were typed.
  std::vector<std::string> baseline_texts;
  std::string item_bytes_text;
  std::string budget_bytes_text = "256M";
  std::string piece_bytes_text;
  std::string transform_text;
  std::string channel_scale_text;
  std::string channel_bias_text;
  std::string item_shape_text;
  std::string crop_text;
  bool planar = false;
  std::string grow_text = "0";
  std::string device_text = "cpu";

  // Set by ParseStreamTexts.
  int64_t item_bytes = 0;
  int64_t budget_bytes = 0;
  int64_t piece_bytes = 0;
  std::vector<Mode> modes;  // sluice first
  absl::optional<ItemTransform> transform;

  bool is_generator() const { return source == "generator"; }
  bool is_emulated() const { return device == "emulated"; }
  bool deals() const { return share == "deal"; }
  absl::Duration timeout() const { return absl::Seconds(timeout_s); }
};

// Gives `app` the flags, which write to `options`; `options` must live as long as `app` is used.
void AddStreamFlags(CLI::App* app, StreamBenchOptions* options);

// To be called after parsing: reads what was given as text, and checks what does not go together.
// InvalidArgument names the flag.
absl::Status ParseStreamTexts(StreamBenchOptions* options);

// Those of `options` that are of the transform.
TransformFlags TransformFlagsOf(const StreamBenchOptions& options);

// What the library is asked for, of which only the generator is missing. `rank` of `size`.
StreamOptions StreamOptionsOf(const StreamBenchOptions& options, int rank, int size);

// Epochs that a trace keeps spans of.
int64_t TracedEpochs(const StreamBenchOptions& options);

InjectedDelay DelayOf(const StreamBenchOptions& options);

// All that must be equal on all ranks, by the name of its flag; texts as hashes.
std::vector<std::pair<std::string, int64_t>> StreamKnobs(const StreamBenchOptions& options);

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_STREAM_OPTIONS_H_
