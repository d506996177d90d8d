// Checks, one after the other.
#include "session/stream_options.h"

#include "absl/strings/str_cat.h"
#include "device/normalization.h"
#include "plan/cursor.h"
#include "tensor/stable_hash.h"

namespace sluice {

namespace {

constexpr int64_t kItemsAtOnceMax = int64_t{1} << 24;

}  // namespace

absl::Status CheckStreamOptions(const StreamOptions& options) {
  const auto at_least = [](absl::string_view name, int64_t value, int64_t least) {
    if (value >= least) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(name, " is ", value, " but must be at least ", least));
  };
  absl::Status status;
  status.Update(at_least("epochs", options.epochs, 1));
  status.Update(at_least("budget_bytes", options.budget_bytes, 1));
  status.Update(at_least("slots", options.slots, 0));
  status.Update(at_least("piece_bytes", options.piece_bytes, 0));
  status.Update(at_least("device_buffers", options.device_buffers, 1));
  status.Update(at_least("batch_items", options.batch_items, 1));
  status.Update(at_least("selection.first", options.selection.first, 0));
  status.Update(at_least("selection.step", options.selection.step, 1));
  status.Update(at_least("selection.end", options.selection.end, -1));
  status.Update(at_least("retry.attempts_max", options.retry.attempts_max, 1));
  status.Update(at_least("source.connections", options.source.connections, 1));
  // Each item of a batch, and each buffer, costs some memory of ours beside its bytes.
  if (status.ok() && options.batch_items > kItemsAtOnceMax / options.device_buffers) {
    status = absl::InvalidArgumentError(
        absl::StrCat(options.device_buffers, " device_buffers of ", options.batch_items,
                     " batch_items are more than ", kItemsAtOnceMax, " items at once"));
  }
  if (status.ok() && options.timeout <= absl::ZeroDuration()) {
    status = absl::InvalidArgumentError("timeout must be above 0");
  }
  if (status.ok() && options.retry.request_timeout <= absl::ZeroDuration()) {
    status = absl::InvalidArgumentError("retry.request_timeout must be above 0");
  }
  if (status.ok() && options.epochs >= int64_t{1} << kRunBits) {
    status = absl::InvalidArgumentError(
        absl::StrCat("epochs is ", options.epochs, ", which is too many"));
  }
  if (status.ok() && options.cursor.size() > Cursor::kBytesMax) {
    status = absl::InvalidArgumentError("the cursor is too long to be one");
  }
  if (status.ok() && options.transform &&
      !NormalizationExists(options.transform->src, options.transform->dst)) {
    status = absl::InvalidArgumentError(absl::StrCat("no transform leads from ",
                                                     DTypeName(options.transform->src), " to ",
                                                     DTypeName(options.transform->dst)));
  }
  return status;
}

absl::Status CheckStreamDevice(const StreamOptions& options, const Accelerator* accelerator) {
  if (options.device == DeviceKind::kCpu) {
    if (!options.await_in_stream) return absl::OkStatus();
    return absl::InvalidArgumentError("await_in_stream goes with items for a device");
  }
  if (accelerator == nullptr) {
    return absl::InvalidArgumentError(
        "items for a device, but the session was made without an accelerator");
  }
  if (options.device == accelerator->kind()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("items for a device of DLPack's kind ", static_cast<int>(options.device),
                   ", but the session uses ", accelerator->description()));
}

int64_t HashOfStream(const StreamOptions& options) {
  StableHash hash;
  hash.AddText(options.source.uri);
  hash.AddSigned(static_cast<int64_t>(options.source.format));
  hash.AddSigned(options.source.item_bytes);
  hash.AddSigned(options.source.generator_items);
  hash.AddSigned(options.shuffle ? 1 : 0);
  hash.Add(options.seed);
  hash.AddSigned(options.epochs);
  hash.AddSigned(options.piece_bytes);
  hash.AddSigned(options.exchange ? 1 : 0);
  return static_cast<int64_t>(hash.value());
}

}  // namespace sluice
