// Checks, one after the other.
#include "session/stream/stream_options.h"

#include <bit>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "plan/shard/cursor.h"
#include "session/base/option_range.h"
#include "session/stream/generate_gate.h"
#include "session/stream/item_normalizer.h"
#include "tensor/stable_hash.h"

namespace sluice {

namespace {

constexpr int64_t kItemsAtOnceMax = int64_t{1} << 24;
constexpr int64_t kGeneratorThreadsMax = 256;

absl::Status CheckGenerator(const StreamOptions& options) {
  const StreamSource& source = options.source;
  absl::Status status;
  status.Update(CheckAtLeast("source.generate_ahead", source.generate_ahead, 1));
  status.Update(CheckAtLeast("source.generator_threads", source.generator_threads, 1));
  status.Update(
      CheckAtMost("source.generator_threads", source.generator_threads, kGeneratorThreadsMax));
  if (!status.ok() || !source.uri.empty()) return status;
  if (source.generator != nullptr && source.sized_generator != nullptr) {
    return absl::InvalidArgumentError("generator and sized_generator are both given: one makes");
  }
  const auto& transform = options.buffers.transform;
  if (source.sized_generator != nullptr && transform &&
      (transform->planar || transform->crop || !transform->shape.empty() ||
       !transform->channel_scale.empty())) {
    return absl::InvalidArgumentError(
        "a sized_generator goes with scale and bias alone: its items have no shape");
  }
  const bool free = source.generate_order == GenerateOrder::kFree;
  if (!free && source.generate_ahead != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("source.generate_ahead is ", source.generate_ahead,
                     ", but the generate_order says itself how far the generator runs"));
  }
  if (!free && options.reads.hedge.enabled) {
    return absl::InvalidArgumentError(
        "hedges make an item twice, which no generate_order but kFree allows");
  }
  if (source.generate_order == GenerateOrder::kOneAhead && options.buffers.count < 2) {
    return absl::InvalidArgumentError(
        "generating one ahead takes buffers.count of at least 2: the trainer holds a batch while "
        "it waits for the next");
  }
  return status;
}

// What varies in length comes after how long it is: no two transforms give one sequence.
void AddTransform(const ItemTransform& transform, StableHash* hash) {
  const auto add_floats = [hash](const std::vector<float>& values) {
    hash->Add(values.size());
    for (const float value : values) hash->Add(std::bit_cast<uint32_t>(value));
  };
  hash->AddSigned(static_cast<int64_t>(transform.src));
  hash->AddSigned(static_cast<int64_t>(transform.dst));
  add_floats({transform.scale, transform.bias});
  add_floats(transform.channel_scale);
  add_floats(transform.channel_bias);
  hash->Add(transform.shape.size());
  for (const int64_t size : transform.shape) hash->AddSigned(size);
  hash->AddSigned(transform.planar ? 1 : 0);
  hash->AddSigned(transform.crop ? 1 : 0);
  const ItemCrop crop = transform.crop.value_or(ItemCrop());
  for (const int64_t value : {crop.top, crop.left, crop.height, crop.width}) {
    hash->AddSigned(value);
  }
}

}  // namespace

absl::Status CheckStreamOptions(const StreamOptions& options) {
  absl::Status status;
  status.Update(CheckAtLeast("order.epochs", options.order.epochs, 1));
  status.Update(
      CheckAtLeast("order.shuffle_block_items", options.order.shuffle_block_items.value_or(1), 1));
  status.Update(CheckAtLeast("reads.budget_bytes", options.reads.budget_bytes, 1));
  status.Update(CheckAtLeast("reads.slots", options.reads.slots.value_or(1), 1));
  status.Update(CheckAtLeast("reads.piece_bytes", options.reads.piece_bytes.value_or(1), 1));
  status.Update(CheckAtLeast("buffers.count", options.buffers.count, 1));
  status.Update(CheckAtLeast("buffers.batch_items", options.buffers.batch_items, 1));
  status.Update(CheckAtLeast("selection.first", options.selection.first, 0));
  status.Update(CheckAtLeast("selection.step", options.selection.step, 1));
  status.Update(CheckAtLeast("selection.end", options.selection.end.value_or(0), 0));
  status.Update(CheckAtLeast("trace_epochs", options.trace_epochs.value_or(0), 0));
  status.Update(CheckAtLeast("reads.retry.attempts_max", options.reads.retry.attempts_max, 1));
  status.Update(CheckAtLeast("source.connections", options.source.connections, 1));
  status.Update(CheckAtMost("source.connections", options.source.connections, kConnectionsMax));
  status.Update(CheckGenerator(options));
  // Each item of a batch, and each buffer, costs some memory of ours beside its bytes.
  if (status.ok() && options.buffers.batch_items > kItemsAtOnceMax / options.buffers.count) {
    status = absl::InvalidArgumentError(
        absl::StrCat(options.buffers.count, " buffers of ", options.buffers.batch_items,
                     " batch_items are more than ", kItemsAtOnceMax, " items at once"));
  }
  if (status.ok() && options.order.shuffle_block_items && !options.order.shuffle) {
    status = absl::InvalidArgumentError("order.shuffle_block_items goes with order.shuffle");
  }
  if (status.ok() && options.timeout <= absl::ZeroDuration()) {
    status = absl::InvalidArgumentError("timeout must be above 0");
  }
  if (status.ok() && options.reads.retry.request_timeout <= absl::ZeroDuration()) {
    status = absl::InvalidArgumentError("reads.retry.request_timeout must be above 0");
  }
  if (status.ok() && options.order.epochs >= int64_t{1} << kRunBits) {
    status = absl::InvalidArgumentError(
        absl::StrCat("order.epochs is ", options.order.epochs, ", which is too many"));
  }
  if (status.ok() && options.order.cursor.size() > Cursor::kBytesMax) {
    status = absl::InvalidArgumentError("the cursor is too long to be one");
  }
  if (status.ok() && options.buffers.transform) status = CheckTransform(*options.buffers.transform);
  return status;
}

absl::Status CheckStreamDevice(const StreamOptions& options, const Accelerator* accelerator) {
  if (options.buffers.device == DeviceKind::kCpu) {
    if (!options.buffers.await_in_stream) return absl::OkStatus();
    return absl::InvalidArgumentError("await_in_stream goes with items for a device");
  }
  if (accelerator == nullptr) {
    return absl::InvalidArgumentError(
        "items for a device, but the session was made without an accelerator");
  }
  if (options.buffers.device == accelerator->kind()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("items for a device of DLPack's kind ", static_cast<int>(options.buffers.device),
                   ", but the session uses ", accelerator->description()));
}

int64_t HashOfStream(const StreamOptions& options) {
  StableHash hash;
  hash.AddText(options.source.uri);
  hash.AddSigned(static_cast<int64_t>(options.source.format));
  hash.AddSigned(options.source.item_bytes);
  hash.AddSigned(options.source.generator_items);
  hash.AddSigned(options.source.sized_generator != nullptr ? 1 : 0);
  hash.AddSigned(static_cast<int64_t>(options.source.generate_order));
  hash.AddSigned(options.source.generate_ahead);
  hash.AddSigned(options.source.generator_threads);
  hash.AddSigned(options.order.shuffle ? 1 : 0);
  hash.Add(options.order.seed);
  hash.AddSigned(options.order.shuffle_block_items.value_or(1));
  hash.AddSigned(options.order.epochs);
  hash.AddSigned(options.reads.piece_bytes.value_or(0));
  hash.AddSigned(options.reads.exchange ? 1 : 0);
  hash.AddSigned(options.buffers.transform ? 1 : 0);
  if (options.buffers.transform) AddTransform(*options.buffers.transform, &hash);
  return static_cast<int64_t>(hash.value());
}

}  // namespace sluice
