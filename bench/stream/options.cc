// Reading the flags that are texts, and what they come to.
#include "stream/options.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "session/stream/describe_stream.h"
#include "sluice/status.h"
#include "storage/fault_spec.h"
#include "workload/json_input.h"
#include "workload/numbers.h"
#include "workload/write_file.h"

namespace sluice::bench {
namespace {

constexpr int kMostWorkers = 1024;
constexpr int kMostAhead = 65536;
constexpr int kMostSlabs = 65536;

absl::Status Refuse(absl::string_view text) { return absl::InvalidArgumentError(text); }

// Sets `device` and `device_gb_per_s`: cpu, cuda, emulated or emulated:18.
absl::Status ParseDeviceText(StreamBenchOptions* options) {
  const std::string& text = options->device_text;
  const size_t colon = text.find(':');
  const bool has_rate = colon != std::string::npos;
  options->device = text.substr(0, colon);
  double* const rate = &options->device_gb_per_s;
  const bool good_rate = has_rate && absl::SimpleAtod(text.substr(colon + 1), rate) &&
                         std::isfinite(*rate) && *rate > 0;
  const bool is_plain = options->device == "cpu" || options->device == "cuda";
  if (options->is_emulated() ? !has_rate || good_rate : is_plain && !has_rate) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("\"", text, "\" is none of cpu, cuda, emulated or emulated:GB/S"));
}

absl::Status ParseModes(StreamBenchOptions* options) {
  options->modes = {Mode()};
  for (const std::string& text : options->baseline_texts) {
    SLUICE_ASSIGN_OR_RETURN(const auto mode, Prefixed("--baseline", ParseBaselineMode(text)));
    if (std::find(options->modes.begin(), options->modes.end(), mode) != options->modes.end()) {
      return Refuse(absl::StrCat("--baseline: \"", text, "\" is there twice"));
    }
    options->modes.push_back(mode);
  }
  return absl::OkStatus();
}

absl::Status CheckGenerateOrder(const StreamBenchOptions& o) {
  const bool ordered = o.generate_order != "free";
  if (ordered && o.stream.source.generate_ahead != 1) {
    return Refuse("--generate-ahead goes with --generate-order free");
  }
  if (ordered && o.stream.reads.hedge.enabled)
    return Refuse("--hedge goes with --generate-order free");
  if (o.generate_order == "one-ahead" && o.stream.buffers.count < 2) {
    return Refuse("--generate-order one-ahead needs --device-buffers 2 or more");
  }
  for (size_t i = 1; i < o.modes.size(); ++i) {
    const bool is_loop = o.modes[i].kind == Mode::Kind::kLoop;
    if (is_loop && o.stream.buffers.transform)
      return Refuse("--baseline loop does not go with --transform");
    if (ordered && !is_loop) {
      return Refuse(absl::StrCat("--generate-order ", o.generate_order,
                                 " does not go with --baseline ", o.modes[i].Name(),
                                 ": other loaders know no updates, but loop"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckGenerator(const StreamBenchOptions& o) {
  if (!o.is_generator()) {
    const FlagConfig given = StreamConfig(o);
    const FlagConfig defaults = StreamConfig(StreamBenchOptions());
    for (size_t i = 0; i < given.size(); ++i) {
      const std::string& name = given[i].first;
      if (!absl::StartsWith(name, "generat") || given[i] == defaults[i]) continue;
      return Refuse(
          absl::StrCat("--", absl::StrReplaceAll(name, {{"_", "-"}}), " is of --source generator"));
    }
    const Mode loop{Mode::Kind::kLoop};
    if (std::find(o.modes.begin(), o.modes.end(), loop) != o.modes.end()) {
      return Refuse("--baseline loop is of --source generator");
    }
    return absl::OkStatus();
  }
  if (o.items < 1 || o.stream.source.item_bytes < 1) {
    return Refuse("--source generator needs --items and --item-bytes");
  }
  if (o.format != "index") return Refuse("--format is of what lies on storage, not generator");
  return CheckGenerateOrder(o);
}

// Ranges of flags let what is no number pass.
absl::Status CheckNumbers(const StreamBenchOptions& o) {
  for (const double value :
       {o.generate_ms, o.latency_ms, o.jitter, o.tail_percent, o.tail_factor, o.consume_us}) {
    if (std::isnan(value)) return Refuse("a flag's value is nan");
  }
  return absl::OkStatus();
}

absl::Status CheckTogether(const StreamBenchOptions& o) {
  SLUICE_RETURN_IF_ERROR(CheckNumbers(o));
  if (o.format == "raw" && o.stream.source.item_bytes < 1) {
    return Refuse("--format raw needs --item-bytes");
  }
  if (o.tail_percent > 0 && o.latency_ms == 0) {
    return Refuse("--tail-percent makes a latency longer: it needs --latency-ms");
  }
  if (o.stream.order.shuffle_block_items && !o.stream.order.shuffle) {
    return Refuse("--shuffle-block-items needs --shuffle");
  }
  if (o.trace_file.empty() && o.trace_epochs != StreamBenchOptions().trace_epochs) {
    return Refuse("--trace-epochs needs --trace");
  }
  if (o.corrupt > 0 && o.check == Check::kNone) return Refuse("--corrupt needs --check");
  SLUICE_RETURN_IF_ERROR(Prefixed("--fault", ParseFaultSpec(o.fault).status()));
  return CheckGenerator(o);
}

// The number of a name: of names with '_' where flags have '-'.
template <typename T>
T ChoiceOf(const std::string& name, absl::Span<const char* const> names) {
  const std::string wanted = absl::StrReplaceAll(name, {{"-", "_"}});
  return static_cast<T>(std::find(names.begin(), names.end(), wanted) - names.begin());
}

}  // namespace

std::string Mode::Name() const {
  switch (kind) {
    case Kind::kWarm:
      return "warm";
    case Kind::kSerial:
      return "serial";
    case Kind::kLoop:
      return "loop";
    case Kind::kWaves:
      return absl::StrCat("waves:", slabs);
    case Kind::kThreads:
      return absl::StrCat("threads:", workers, "x", ahead);
    case Kind::kSluice:
      break;
  }
  return "sluice";
}

absl::StatusOr<Mode> ParseBaselineMode(absl::string_view text) {
  if (text == "warm") return Mode{Mode::Kind::kWarm};
  if (text == "serial") return Mode{Mode::Kind::kSerial};
  if (text == "loop") return Mode{Mode::Kind::kLoop};
  absl::string_view counts = text;
  Mode mode{Mode::Kind::kWaves};
  if (absl::ConsumePrefix(&counts, "waves:") && absl::SimpleAtoi(counts, &mode.slabs) &&
      mode.slabs >= 1 && mode.slabs <= kMostSlabs) {
    return mode;
  }
  counts = text;
  mode = Mode{Mode::Kind::kThreads};
  if (absl::ConsumePrefix(&counts, "threads:")) {
    const std::pair<absl::string_view, absl::string_view> sides =
        absl::StrSplit(counts, absl::MaxSplits('x', 1));
    if (absl::SimpleAtoi(sides.first, &mode.workers) && mode.workers >= 1 &&
        mode.workers <= kMostWorkers && absl::SimpleAtoi(sides.second, &mode.ahead) &&
        mode.ahead >= 1 && mode.ahead <= kMostAhead) {
      return mode;
    }
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "\"", text, "\" is neither warm, serial, loop, waves:N (N slabs, 1 to ", kMostSlabs,
      ") nor threads:WxQ, W workers (1 to ", kMostWorkers, ") of Q items each"));
}

absl::Status ParseStreamTexts(StreamBenchOptions* o) {
  if (!o->is_generator() && !o->source.empty() && !absl::StrContains(o->source, ':')) {
    o->source = absl::StrCat("file:", o->source);
  }
  const absl::string_view source = o->source;
  const size_t scheme = source.find(':');
  absl::Status status = KeepApart(
      &o->json_file,
      {{"--source",
        scheme == source.npos ? "" : absl::StrCat(source.substr(scheme + 1), "/index.json")},
       {"--trace", o->trace_file}});
  if (status.ok()) status = Prefixed("--device", ParseDeviceText(o));
  if (status.ok()) status = ParseModes(o);
  if (!status.ok()) return status;
  SLUICE_ASSIGN_OR_RETURN(o->stream.buffers.transform, ParseTransformFlags(o->transform_flags));
  if (o->is_generator() && o->generate_order.empty()) o->generate_order = "free";
  if (o->share.empty()) o->share = o->stream.reads.exchange ? "all" : "deal";
  return CheckTogether(*o);
}

StreamOptions StreamOptionsOf(const StreamBenchOptions& o, int rank, int size) {
  StreamOptions stream = o.stream;
  if (!o.is_generator()) stream.source.uri = o.source;
  stream.source.format = ChoiceOf<ItemFormat>(o.format, kItemFormats);
  stream.source.generator_items = o.items;
  if (!o.generate_order.empty()) {
    stream.source.generate_order = ChoiceOf<GenerateOrder>(o.generate_order, kGenerateOrders);
  }
  if (o.deals()) stream.selection = {rank, size, absl::nullopt};
  if (o.items > 0) stream.selection.end = o.items;
  stream.buffers.device = o.is_emulated()      ? kEmulatedDevice
                          : o.device == "cuda" ? DeviceKind::kCuda
                                               : DeviceKind::kCpu;
  stream.order.in_order = o.order == "in";
  stream.trace_epochs = TracedEpochs(o);
  return stream;
}

int64_t TracedEpochs(const StreamBenchOptions& o) {
  return o.trace_epochs < 0 ? std::numeric_limits<int64_t>::max() : o.trace_epochs;
}

InjectedDelay DelayOf(const StreamBenchOptions& o) {
  return {.latency = absl::Milliseconds(o.latency_ms),
          .jitter = o.jitter,
          .tail_percent = o.tail_percent,
          .tail_factor = o.tail_factor,
          .faults = o.fault,
          .seed = o.stream.order.seed,
          .read_ahead = o.read_ahead};
}

FlagConfig StreamConfig(const StreamBenchOptions& options) {
  StreamBenchOptions o = options;
  FlagConfig config = ConfigOf(StreamFlags(&o));
  for (auto& [name, value] : config) {
    if (value.is_boolean()) value = value.get<bool>() ? 1 : 0;
    if (name == "generate_order" && o.generate_order.empty()) value = nullptr;
  }
  std::vector<std::string> baselines;
  for (size_t i = 1; i < o.modes.size(); ++i) baselines.push_back(o.modes[i].Name());
  config.emplace_back("baselines", baselines);
  config.emplace_back("check", static_cast<int>(o.check));
  config.emplace_back("device", o.device);
  config.emplace_back("device_gb_per_s", o.device_gb_per_s);
  config.emplace_back("transform", TransformText(o.transform_flags));
  return config;
}

}  // namespace sluice::bench
