// Sizes from shapes, contents from the isend baseline.
#include "reshard/baselines/target_bytes.h"

#include <memory>

namespace sluice::bench {

absl::Span<std::byte> BytesOf(const TensorView& view) {
  if (view.data == nullptr) return {};
  size_t bytes = static_cast<size_t>(DTypeBytes(view.dtype));
  for (const int64_t size : view.shape) bytes *= static_cast<size_t>(size);
  return {static_cast<std::byte*>(view.data) + view.byte_offset, bytes};
}

absl::Status FillOnce(const BaselineJob& job) {
  const std::unique_ptr<Baseline> isend = MakeIsendBaseline();
  absl::Status status = isend->Plan(job);
  return status.ok() ? isend->Run() : status;
}

}  // namespace sluice::bench
