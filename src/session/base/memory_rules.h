// The memory that a session's tensors may be in, and how their bytes get from there to the network.
#ifndef SLUICE_SRC_SESSION_BASE_MEMORY_RULES_H_
#define SLUICE_SRC_SESSION_BASE_MEMORY_RULES_H_

#include <cstddef>

#include "absl/status/status.h"
#include "sluice/accelerator.h"
#include "sluice/tensor.h"
#include "sluice/transport.h"

namespace sluice {

struct MemoryRules {
  const Accelerator* accelerator = nullptr;  // null: host memory only
  DeviceKind staging = DeviceKind::kCpu;     // which memory slots are
  bool takes_host_memory = true;             // messages can lie there, outside of slots,
  bool takes_device_memory = false;          // or there,
  bool takes_rows = true;                    // or be rows
  bool takes_folds = false;                  // a receive can add up several
  bool copies_inline = false;                // as of DeviceTraits
  Transport* transport = nullptr;            // that is asked about memory of the device

  // True if a message can lie in memory of this kind.
  bool Takes(DeviceKind kind) const {
    return kind == DeviceKind::kCuda ? takes_device_memory : takes_host_memory;
  }
};

// OK if a tensor may be in this kind of memory, on this device.
absl::Status CheckKind(const MemoryRules& rules, const TensorView& view);

// OK if the view's memory is of the kind that it is said to be.
absl::Status CheckMemory(const MemoryRules& rules, const void* data, DeviceKind kind);

// Whether messages can be sent from where the view's memory lies, which has been checked.
bool CanSendFrom(const MemoryRules& rules, const std::byte* data, DeviceKind kind);

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_BASE_MEMORY_RULES_H_
