// Checks, one after the other.
#include "session/stream/stream_options.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "plan/shard/cursor.h"
#include "session/stream/describe_stream.h"
#include "session/stream/generate_gate.h"
#include "session/stream/item_normalizer.h"

namespace sluice {

namespace {

absl::Status CheckIndex(const StreamSource& source) {
  if (source.index.empty()) return absl::OkStatus();
  if (source.uri.empty()) {
    return absl::InvalidArgumentError("source.index goes with a uri: a generator has no objects");
  }
  if (source.format == ItemFormat::kIndex) return absl::OkStatus();
  return absl::InvalidArgumentError("source.index goes with no format but \"index\"");
}

constexpr int64_t kItemsAtOnceMax = int64_t{1} << 24;

absl::Status CheckGenerator(const StreamOptions& options) {
  const StreamSource& source = options.source;
  if (!source.uri.empty()) return absl::OkStatus();
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
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckStreamOptions(const StreamOptions& options) {
  CheckRanges ranges(RangeWords::kBut);
  Describe(ranges, options);
  absl::Status status = ranges.status();
  status.Update(CheckIndex(options.source));
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
        "items for a device, but the session was made without an accelerator: give it one, in a "
        "build with CUDA");
  }
  if (options.buffers.device == accelerator->kind()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("items for a device of DLPack's kind ", static_cast<int>(options.buffers.device),
                   ", but the session uses ", accelerator->description()));
}

int64_t HashOfStream(const StreamOptions& options) {
  HashEqual hash;
  Describe(hash, options);
  hash.Field("sized", options.source.sized_generator != nullptr, {.equal = true});
  return static_cast<int64_t>(hash.value());
}

}  // namespace sluice
