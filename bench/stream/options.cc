// Reading the flags that are texts, and what they come to.
#include "stream/options.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "storage/fault_spec.h"
#include "stream/device_text.h"
#include "tensor/stable_hash.h"
#include "workload/json_input.h"
#include "workload/numbers.h"
#include "workload/write_file.h"

namespace sluice::bench {
namespace {

absl::Status Refuse(absl::string_view text) { return absl::InvalidArgumentError(text); }

absl::Status ParseSize(const char* flag, const std::string& text, int64_t* bytes) {
  if (text.empty()) return absl::OkStatus();
  const auto parsed = ParseBytes(text);
  if (!parsed.ok()) return Prefixed(flag, parsed.status());
  *bytes = *parsed;
  return absl::OkStatus();
}

absl::Status ParseModes(StreamBenchOptions* options) {
  options->modes = {Mode()};
  for (const std::string& text : options->baseline_texts) {
    const auto mode = ParseBaselineMode(text);
    if (!mode.ok()) return Prefixed("--baseline", mode.status());
    if (std::find(options->modes.begin(), options->modes.end(), *mode) != options->modes.end()) {
      return Refuse(absl::StrCat("--baseline: \"", text, "\" is there twice"));
    }
    options->modes.push_back(*mode);
  }
  return absl::OkStatus();
}

absl::Status CheckGenerateOrder(const StreamBenchOptions& o) {
  const bool ordered = o.generate_order != "free";
  if (ordered && o.generate_ahead != 1) {
    return Refuse("--generate-ahead goes with --generate-order free");
  }
  if (ordered && o.hedge != 0) return Refuse("--hedge goes with --generate-order free");
  if (o.generate_order == "one-ahead" && o.device_buffers < 2) {
    return Refuse("--generate-order one-ahead needs --device-buffers 2 or more");
  }
  for (size_t i = 1; i < o.modes.size(); ++i) {
    const bool is_loop = o.modes[i].kind == Mode::Kind::kLoop;
    if (is_loop && o.transform) return Refuse("--baseline loop does not go with --transform");
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
    if (o.generate_ms > 0) return Refuse("--generate-ms is of --source generator");
    if (!o.generate_order.empty()) return Refuse("--generate-order is of --source generator");
    if (o.generate_ahead != 1) return Refuse("--generate-ahead is of --source generator");
    if (o.generator_threads != 1) return Refuse("--generator-threads is of --source generator");
    const Mode loop{Mode::Kind::kLoop};
    if (std::find(o.modes.begin(), o.modes.end(), loop) != o.modes.end()) {
      return Refuse("--baseline loop is of --source generator");
    }
    return absl::OkStatus();
  }
  if (o.items < 1 || o.item_bytes < 1) {
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
  if (absl::Status status = CheckNumbers(o); !status.ok()) return status;
  if (o.format == "raw" && o.item_bytes < 1) return Refuse("--format raw needs --item-bytes");
  if (o.tail_percent > 0 && o.latency_ms == 0) {
    return Refuse("--tail-percent makes a latency longer: it needs --latency-ms");
  }
  if (o.shuffle_block_items > 0 && !o.shuffle) {
    return Refuse("--shuffle-block-items needs --shuffle");
  }
  if (o.trace_file.empty() && o.trace_epochs) return Refuse("--trace-epochs needs --trace");
  if (o.corrupt > 0 && o.check == Check::kNone) return Refuse("--corrupt needs --check");
  const auto faults = ParseFaultSpec(o.fault);
  if (!faults.ok()) return Prefixed("--fault", faults.status());
  return CheckGenerator(o);
}

ItemFormat FormatOf(const std::string& name) {
  if (name == "raw") return ItemFormat::kRaw;
  if (name == "npy") return ItemFormat::kNpy;
  return name == "safetensors" ? ItemFormat::kSafetensors : ItemFormat::kIndex;
}

GenerateOrder OrderOf(const std::string& name) {
  if (name == "after-update") return GenerateOrder::kAfterUpdate;
  return name == "one-ahead" ? GenerateOrder::kOneAhead : GenerateOrder::kFree;
}

}  // namespace

absl::Status ParseStreamTexts(StreamBenchOptions* o) {
  const absl::string_view source = o->source;
  const size_t scheme = source.find(':');
  absl::Status status = KeepApart(
      &o->json_file,
      {{"--source",
        scheme == source.npos ? "" : absl::StrCat(source.substr(scheme + 1), "/index.json")},
       {"--trace", o->trace_file}});
  if (status.ok()) status = ParseSize("--item-bytes", o->item_bytes_text, &o->item_bytes);
  if (status.ok()) status = ParseSize("--budget-bytes", o->budget_bytes_text, &o->budget_bytes);
  if (status.ok()) status = ParseSize("--piece-bytes", o->piece_bytes_text, &o->piece_bytes);
  if (status.ok()) status = ParseSize("--grow", o->grow_text, &o->grow_bytes);
  if (status.ok()) status = Prefixed("--device", ParseDeviceText(o));
  if (status.ok()) status = ParseModes(o);
  if (!status.ok()) return status;
  const auto transform = ParseTransformFlags(TransformFlagsOf(*o));
  if (!transform.ok()) return transform.status();
  o->transform = *transform;
  if (o->is_generator() && o->generate_order.empty()) o->generate_order = "free";
  if (o->share.empty()) o->share = o->exchange != 0 ? "all" : "deal";
  return CheckTogether(*o);
}

TransformFlags TransformFlagsOf(const StreamBenchOptions& o) {
  return {o.transform_text,  o.channel_scale_text, o.channel_bias_text,
          o.item_shape_text, o.crop_text,          o.planar};
}

StreamOptions StreamOptionsOf(const StreamBenchOptions& o, int rank, int size) {
  StreamOptions stream;
  StreamSource& source = stream.source;
  if (!o.is_generator()) source.uri = o.source;
  source.format = FormatOf(o.format);
  source.item_bytes = o.item_bytes;
  source.generator_items = o.items;
  source.generate_order = OrderOf(o.generate_order);
  source.generate_ahead = o.generate_ahead;
  source.generator_threads = o.generator_threads;
  source.connections = o.connections;
  source.ca_file = o.ca_file;
  if (o.deals()) stream.selection = {rank, size, absl::nullopt};
  if (o.items > 0) stream.selection.end = o.items;
  stream.order.shuffle = o.shuffle;
  if (o.shuffle_block_items > 0) stream.order.shuffle_block_items = o.shuffle_block_items;
  stream.order.seed = o.seed;
  stream.order.epochs = o.epochs;
  stream.order.cursor = o.cursor;
  stream.reads.budget_bytes = o.budget_bytes;
  if (o.slots != 0) stream.reads.slots = o.slots;
  if (o.piece_bytes > 0) stream.reads.piece_bytes = o.piece_bytes;
  stream.buffers.count = o.device_buffers;
  stream.buffers.device = o.is_emulated()      ? kEmulatedDevice
                          : o.device == "cuda" ? DeviceKind::kCuda
                                               : DeviceKind::kCpu;
  stream.buffers.batch_items = o.batch;
  stream.buffers.transform = o.transform;
  stream.order.in_order = o.order == "in";
  stream.reads.exchange = o.exchange != 0;
  stream.reads.hedge.enabled = o.hedge != 0;
  stream.reads.retry.attempts_max = o.attempts;
  stream.reads.retry.request_timeout = absl::Seconds(o.request_timeout_s);
  stream.timeout = o.timeout();
  stream.trace_epochs = TracedEpochs(o);
  return stream;
}

int64_t TracedEpochs(const StreamBenchOptions& o) {
  const int64_t epochs = o.trace_epochs.value_or(5);
  return epochs < 0 ? std::numeric_limits<int64_t>::max() : epochs;
}

InjectedDelay DelayOf(const StreamBenchOptions& o) {
  return {.latency = absl::Milliseconds(o.latency_ms),
          .jitter = o.jitter,
          .tail_percent = o.tail_percent,
          .tail_factor = o.tail_factor,
          .faults = o.fault,
          .seed = o.seed,
          .read_ahead = o.read_ahead != 0};
}

std::vector<std::pair<std::string, int64_t>> StreamKnobs(const StreamBenchOptions& o) {
  const auto hash_of = [](const std::string& text) {
    StableHash hash;
    hash.AddText(text);
    return static_cast<int64_t>(hash.value() >> 1);
  };
  const auto micro = [](double value) { return std::llround(value * 1e6); };
  std::string modes;
  for (const Mode& mode : o.modes) absl::StrAppend(&modes, mode.Name(), ",");
  return {{"source", hash_of(o.source)},
          {"format", hash_of(o.format)},
          {"items", o.items},
          {"item-bytes", o.item_bytes},
          {"connections", o.connections},
          {"generate-ms (in 10^-6)", micro(o.generate_ms)},
          {"generate-order", hash_of(o.generate_order)},
          {"generate-ahead", o.generate_ahead},
          {"generator-threads", o.generator_threads},
          {"latency-ms (in 10^-6)", micro(o.latency_ms)},
          {"jitter (in 10^-6)", micro(o.jitter)},
          {"tail-percent (in 10^-6)", micro(o.tail_percent)},
          {"tail-factor (in 10^-6)", micro(o.tail_factor)},
          {"fault", hash_of(o.fault)},
          {"read-ahead", o.read_ahead},
          {"budget-bytes", o.budget_bytes},
          {"slots", o.slots},
          {"piece-bytes", o.piece_bytes},
          {"device-buffers", o.device_buffers},
          {"device", hash_of(o.device)},
          {"device GB/s (in 10^-6)", micro(o.device_gb_per_s)},
          {"batch", o.batch},
          {"order", hash_of(o.order)},
          {"hedge", o.hedge},
          {"exchange", o.exchange},
          {"share", hash_of(o.share)},
          {"attempts", o.attempts},
          {"request-timeout-s (in 10^-6)", micro(o.request_timeout_s)},
          {"transform", hash_of(TransformText(TransformFlagsOf(o)))},
          {"progress-thread", o.progress_thread},
          {"timeout-s (in 10^-6)", micro(o.timeout_s)},
          {"epochs", o.epochs},
          {"shuffle", o.shuffle ? 1 : 0},
          {"shuffle-block-items", o.shuffle_block_items},
          {"seed", static_cast<int64_t>(o.seed)},
          {"cursor", hash_of(o.cursor)},
          {"stop-items", o.stop_items},
          {"consume-us (in 10^-6)", micro(o.consume_us)},
          {"baseline", hash_of(modes)},
          {"iters", o.iterations},
          {"check", static_cast<int>(o.check)},
          {"touch", o.touch},
          {"fill-seed", static_cast<int64_t>(o.fill_seed)},
          {"corrupt", o.corrupt},
          {"grow", o.grow_bytes},
          {"trace", o.trace_file.empty() ? 0 : 1}};
}

}  // namespace sluice::bench
