// Checks, one after the other.
#include "session/stream/stream_options.h"

#include "absl/strings/str_cat.h"
#include "device/normalization.h"
#include "plan/shard/cursor.h"
#include "session/base/option_range.h"
#include "tensor/stable_hash.h"

namespace sluice {

namespace {

constexpr int64_t kItemsAtOnceMax = int64_t{1} << 24;

}  // namespace

absl::Status CheckStreamOptions(const StreamOptions& options) {
  absl::Status status;
  status.Update(CheckAtLeast("order.epochs", options.order.epochs, 1));
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
  // Each item of a batch, and each buffer, costs some memory of ours beside its bytes.
  if (status.ok() && options.buffers.batch_items > kItemsAtOnceMax / options.buffers.count) {
    status = absl::InvalidArgumentError(
        absl::StrCat(options.buffers.count, " buffers of ", options.buffers.batch_items,
                     " batch_items are more than ", kItemsAtOnceMax, " items at once"));
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
  if (status.ok() && options.buffers.transform &&
      !NormalizationExists(options.buffers.transform->src, options.buffers.transform->dst)) {
    status = absl::InvalidArgumentError(
        absl::StrCat("no transform leads from ", DTypeName(options.buffers.transform->src), " to ",
                     DTypeName(options.buffers.transform->dst)));
  }
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
  hash.AddSigned(options.order.shuffle ? 1 : 0);
  hash.Add(options.order.seed);
  hash.AddSigned(options.order.epochs);
  hash.AddSigned(options.reads.piece_bytes.value_or(0));
  hash.AddSigned(options.reads.exchange ? 1 : 0);
  return static_cast<int64_t>(hash.value());
}

}  // namespace sluice
