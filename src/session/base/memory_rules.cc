// Kinds of memory, compared.
#include "session/base/memory_rules.h"

#include "absl/strings/str_cat.h"

namespace sluice {

absl::Status CheckKind(const MemoryRules& rules, const TensorView& view) {
  if (view.device == DeviceKind::kCpu || view.device == DeviceKind::kCudaHost) {
    return absl::OkStatus();
  }
  if (rules.accelerator == nullptr) {
    return absl::InvalidArgumentError(
        "view is not in host memory, and the session was made without an accelerator: give it one, "
        "in a build with CUDA");
  }
  if (view.device != rules.accelerator->kind() ||
      view.device_ordinal != rules.accelerator->ordinal()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "view is in memory of device ", view.device_ordinal, " of DLPack's kind ",
        static_cast<int>(view.device), ", the session uses ", rules.accelerator->description()));
  }
  return absl::OkStatus();
}

absl::Status CheckMemory(const MemoryRules& rules, const void* data, DeviceKind kind) {
  if (rules.accelerator == nullptr) return absl::OkStatus();
  return rules.accelerator->CheckMemory(data, kind);
}

bool CanSendFrom(const MemoryRules& rules, const std::byte* data, DeviceKind kind) {
  if (!rules.Takes(kind)) return false;
  if (kind != DeviceKind::kCuda || rules.transport == nullptr) return true;
  return rules.transport->CanSendFrom(data);
}

}  // namespace sluice
