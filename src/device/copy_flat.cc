// One batch, polled until it is complete.
#include "device/copy_flat.h"

#include <cstdint>
#include <thread>

#include "tensor/error_text.h"

namespace sluice {

absl::Status CopyFlat(Device* device, const std::byte* src, DeviceKind src_kind, std::byte* dst,
                      DeviceKind dst_kind, size_t bytes) {
  if (bytes == 0) return absl::OkStatus();
  const Stretch run = {0, 0, static_cast<int64_t>(bytes)};
  StridedCopy copy;
  copy.runs[0] = absl::MakeConstSpan(&run, 1);
  copy.src_strides[0] = copy.dst_strides[0] = 1;
  copy.src = src;
  copy.dst = dst;
  copy.src_kind = src_kind;
  copy.dst_kind = dst_kind;
  copy.end = run.length;
  SLUICE_RETURN_IF_ERROR(device->Start({.copies = absl::MakeConstSpan(&copy, 1)}));
  while (true) {
    uint64_t cookie = 0;
    SLUICE_ASSIGN_OR_RETURN(const int ended, device->Poll(absl::MakeSpan(&cookie, 1)));
    if (ended > 0) return absl::OkStatus();
    std::this_thread::yield();
  }
}

}  // namespace sluice
