// The flags of `sluice-bench stream`: their names are an interface.
#ifndef SLUICE_BENCH_STREAM_OPTIONS_H_
#define SLUICE_BENCH_STREAM_OPTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "job/flag_list.h"
#include "job/flags.h"
#include "sluice/stream.h"
#include "sluice/testing.h"
#include "stream/transform_flags.h"

namespace CLI {
class App;
}

namespace sluice::bench {

// Who delivers the items: Sluice, or one of the plain loaders that it is compared with.
struct Mode {
  // kWarm: Sluice once more, without the injected latency. It bounds what hiding latency can give.
  enum class Kind : uint8_t { kSluice, kWarm, kSerial, kWaves, kThreads, kLoop };
  Kind kind = Kind::kSluice;
  int workers = 0;  // of kThreads,
  int ahead = 0;    // and items of each
  int slabs = 0;    // of kWaves

  std::string Name() const;
  // A stream of the library's delivers the items.
  bool is_stream() const { return kind == Kind::kSluice || kind == Kind::kWarm; }
  friend bool operator==(const Mode&, const Mode&) = default;
};

// Reads "warm", "serial", "loop", "waves:8" or "threads:8x4". InvalidArgument quotes what is none
// of them.
absl::StatusOr<Mode> ParseBaselineMode(absl::string_view text);

struct StreamBenchOptions {
  // What flags set as it is; StreamOptionsOf has the rest.
  StreamOptions stream;

  std::string source;
  std::string format = "index";
  int64_t items = 0;  // 0: all of the source
  double generate_ms = 0;
  std::string generate_order;  // empty: free

  double latency_ms = 0;
  double jitter = 0;
  double tail_percent = 0;
  double tail_factor = 10;
  std::string fault;
  bool read_ahead = true;

  std::string device = "cpu";  // or cuda, or emulated: where device buffers are
  double device_gb_per_s = 0;  // of an emulated one; 0: no limit
  std::string order = "in";
  std::string share;  // empty: "all" with an exchange, "deal" without

  int64_t stop_items = 0;  // of each rank; 0: at the end
  double consume_us = 0;
  Check check = Check::kAll;
  bool touch = false;
  uint64_t fill_seed = 0;
  int64_t corrupt = 0;
  int64_t grow_bytes = 0;

  bool progress_thread = false;
  std::string fabric = "auto";  // as AddFabric
  int iterations = 1;
  std::string trace_file;
  int64_t trace_epochs = 5;       // -1: all
  int64_t trace_events = 262144;  // per rank
  std::string json_file;
  bool csv = false;

  // As they were typed.
  std::vector<std::string> baseline_texts;
  TransformFlags transform_flags;
  std::string device_text = "cpu";

  std::vector<Mode> modes;  // set by ParseStreamTexts; sluice first

  bool is_generator() const { return source == "generator"; }
  bool is_emulated() const { return device == "emulated"; }
  bool deals() const { return share == "deal"; }
  absl::Duration timeout() const { return stream.timeout; }
};

// The flags that write to `options`, but for --check and --fabric.
FlagGroups StreamFlags(StreamBenchOptions* options);

// Gives `app` the flags, which write to `options`; `options` must live as long as `app` is used.
void AddStreamFlags(CLI::App* app, StreamBenchOptions* options);

// To be called after parsing: reads what was given as text, and checks what does not go together.
// InvalidArgument names the flag.
absl::Status ParseStreamTexts(StreamBenchOptions* options);

// What the library is asked for, of which only the generator is missing. `rank` of `size`.
StreamOptions StreamOptionsOf(const StreamBenchOptions& options, int rank, int size);

// Epochs that a trace keeps spans of.
int64_t TracedEpochs(const StreamBenchOptions& options);

InjectedDelay DelayOf(const StreamBenchOptions& options);

// What the flags come to, by their names in results. It must be equal on all ranks.
FlagConfig StreamConfig(const StreamBenchOptions& options);

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_STREAM_OPTIONS_H_
