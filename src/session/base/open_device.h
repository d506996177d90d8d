// The device that a session's copies are made with.
#ifndef SLUICE_SRC_SESSION_BASE_OPEN_DEVICE_H_
#define SLUICE_SRC_SESSION_BASE_OPEN_DEVICE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "device/device.h"
#include "sluice/session.h"

namespace sluice {

// The accelerator's, with a stream of its own; or the host's, where there is no accelerator.
inline absl::StatusOr<std::unique_ptr<Device>> OpenDevice(const SessionOptions& options) {
  if (options.accelerator == nullptr) return MakeHostDevice();
  return options.accelerator->OpenDevice();
}

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_BASE_OPEN_DEVICE_H_
