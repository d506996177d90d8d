// Reading the flags that are texts, and what they come to.
#include "stream/options.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "device/normalization.h"
#include "storage/fault_spec.h"
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

absl::StatusOr<ItemTransform> ParseTransform(const std::string& text) {
  const std::vector<std::string> parts = absl::StrSplit(text, ':');
  ItemTransform transform;
  if (parts.size() != 4 || !absl::SimpleAtof(parts[2], &transform.scale) ||
      !absl::SimpleAtof(parts[3], &transform.bias) || !std::isfinite(transform.scale) ||
      !std::isfinite(transform.bias)) {
    return Refuse(absl::StrCat("\"", text, "\" is not SRC:DST:SCALE:BIAS, such as u8:f32:0.5:-1"));
  }
  const absl::StatusOr<DType> src = ParseDType(parts[0]);
  const absl::StatusOr<DType> dst = ParseDType(parts[1]);
  if (!src.ok()) return src.status();
  if (!dst.ok()) return dst.status();
  transform.src = *src;
  transform.dst = *dst;
  if (!NormalizationExists(*src, *dst)) {
    return Refuse(absl::StrCat("there is no transform from ", parts[0], " to ", parts[1]));
  }
  return transform;
}

absl::Status ParseModes(StreamBenchOptions* options) {
  options->modes = {Mode()};
  for (const std::string& text : options->compare_texts) {
    const auto mode = ParseBaselineMode(text);
    if (!mode.ok()) return Prefixed("--compare", mode.status());
    if (std::find(options->modes.begin(), options->modes.end(), *mode) != options->modes.end()) {
      return Refuse(absl::StrCat("--compare: \"", text, "\" is there twice"));
    }
    options->modes.push_back(*mode);
  }
  return absl::OkStatus();
}

absl::Status CheckGenerator(const StreamBenchOptions& o) {
  if (!o.is_generator()) {
    if (o.generate_ms > 0) return Refuse("--generate-ms is of --source generator");
    if (o.after_update != 0) return Refuse("--after-update is of --source generator");
    return absl::OkStatus();
  }
  if (o.items < 1 || o.item_bytes < 1) {
    return Refuse("--source generator needs --items and --item-bytes");
  }
  if (o.format != "index") return Refuse("--format is of what lies on storage, not generator");
  if (o.after_update == 0) return absl::OkStatus();
  if (o.batch > 1) {
    return Refuse(
        "--after-update does not go with --batch: no item of a batch is made before the "
        "update with the one before it, which comes after the batch");
  }
  if (o.modes.size() > 1) {
    return Refuse(
        "--after-update does not go with --compare: a wave of items cannot wait for "
        "updates with them");
  }
  return absl::OkStatus();
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
  if (o.trace_file.empty() && o.trace_epochs >= 0) return Refuse("--trace-epochs needs --trace");
  if (o.corrupt > 0 && o.verify == "none") return Refuse("--corrupt needs --verify");
  const auto faults = ParseFaultSpec(o.fault);
  if (!faults.ok()) return Prefixed("--fault", faults.status());
  return CheckGenerator(o);
}

ItemFormat FormatOf(const std::string& name) {
  if (name == "raw") return ItemFormat::kRaw;
  if (name == "npy") return ItemFormat::kNpy;
  return name == "safetensors" ? ItemFormat::kSafetensors : ItemFormat::kIndex;
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
  if (status.ok()) status = ParseModes(o);
  if (!status.ok()) return status;
  if (!o->transform_text.empty()) {
    const auto transform = ParseTransform(o->transform_text);
    if (!transform.ok()) return Prefixed("--transform", transform.status());
    o->transform = *transform;
  }
  if (o->share.empty()) o->share = o->exchange != 0 ? "all" : "deal";
  return CheckTogether(*o);
}

Verify VerifyOf(const StreamBenchOptions& options) {
  if (options.verify == "none") return Verify::kNone;
  return options.verify == "sample" ? Verify::kSample : Verify::kFull;
}

StreamOptions StreamOptionsOf(const StreamBenchOptions& o, int rank, int size) {
  StreamOptions stream;
  StreamSource& source = stream.source;
  if (!o.is_generator()) source.uri = o.source;
  source.format = FormatOf(o.format);
  source.item_bytes = o.item_bytes;
  source.generator_items = o.items;
  source.generate_after_update = o.after_update != 0;
  source.connections = o.connections;
  source.ca_file = o.ca_file;
  if (o.deals()) stream.selection = {rank, size, absl::nullopt};
  if (o.items > 0) stream.selection.end = o.items;
  stream.order.shuffle = o.shuffle;
  stream.order.seed = o.seed;
  stream.order.epochs = o.epochs;
  stream.order.cursor = o.cursor;
  stream.reads.budget_bytes = o.budget_bytes;
  if (o.slots != 0) stream.reads.slots = o.slots;
  if (o.piece_bytes > 0) stream.reads.piece_bytes = o.piece_bytes;
  stream.buffers.count = o.device_buffers;
  stream.buffers.device = o.device == "cuda" ? DeviceKind::kCuda : DeviceKind::kCpu;
  stream.buffers.batch_items = o.batch;
  stream.buffers.transform = o.transform;
  stream.order.in_order = o.order == "in";
  stream.reads.exchange = o.exchange != 0;
  stream.reads.hedge.enabled = o.hedge != 0;
  stream.reads.retry.attempts_max = o.attempts;
  stream.reads.retry.request_timeout = absl::Seconds(o.request_timeout_s);
  stream.timeout = o.timeout();
  if (o.trace_epochs >= 0) stream.trace_epochs = o.trace_epochs;
  return stream;
}

InjectedDelay DelayOf(const StreamBenchOptions& o) {
  return {
      absl::Milliseconds(o.latency_ms), o.jitter, o.tail_percent, o.tail_factor, o.fault, o.seed};
}

std::vector<std::pair<std::string, int64_t>> StreamKnobs(const StreamBenchOptions& o) {
  const auto hash_of = [](const std::string& text) {
    StableHash hash;
    hash.AddText(text);
    return static_cast<int64_t>(hash.value() >> 1);
  };
  const auto micro = [](double value) { return std::llround(value * 1e6); };
  std::string compare;
  for (const Mode& mode : o.modes) absl::StrAppend(&compare, mode.Name(), ",");
  return {{"source", hash_of(o.source)},
          {"format", hash_of(o.format)},
          {"items", o.items},
          {"item-bytes", o.item_bytes},
          {"connections", o.connections},
          {"generate-ms (in 10^-6)", micro(o.generate_ms)},
          {"after-update", o.after_update},
          {"latency-ms (in 10^-6)", micro(o.latency_ms)},
          {"jitter (in 10^-6)", micro(o.jitter)},
          {"tail-percent (in 10^-6)", micro(o.tail_percent)},
          {"tail-factor (in 10^-6)", micro(o.tail_factor)},
          {"fault", hash_of(o.fault)},
          {"budget-bytes", o.budget_bytes},
          {"slots", o.slots},
          {"piece-bytes", o.piece_bytes},
          {"device-buffers", o.device_buffers},
          {"batch", o.batch},
          {"order", hash_of(o.order)},
          {"hedge", o.hedge},
          {"exchange", o.exchange},
          {"share", hash_of(o.share)},
          {"attempts", o.attempts},
          {"request-timeout-s (in 10^-6)", micro(o.request_timeout_s)},
          {"transform", hash_of(o.transform_text)},
          {"progress-thread", o.progress_thread},
          {"timeout-s (in 10^-6)", micro(o.timeout_s)},
          {"epochs", o.epochs},
          {"shuffle", o.shuffle ? 1 : 0},
          {"seed", static_cast<int64_t>(o.seed)},
          {"cursor", hash_of(o.cursor)},
          {"stop-items", o.stop_items},
          {"consume-us (in 10^-6)", micro(o.consume_us)},
          {"compare", hash_of(compare)},
          {"iterations", o.iterations},
          {"verify", hash_of(o.verify)},
          {"fill-seed", static_cast<int64_t>(o.fill_seed)},
          {"corrupt", o.corrupt},
          {"grow", o.grow_bytes},
          {"trace", o.trace_file.empty() ? 0 : 1}};
}

}  // namespace sluice::bench
