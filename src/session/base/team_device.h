// A host device whose large copies several threads share.
#ifndef SLUICE_SRC_SESSION_BASE_TEAM_DEVICE_H_
#define SLUICE_SRC_SESSION_BASE_TEAM_DEVICE_H_

#include <cstdint>
#include <memory>

#include "device/device.h"

namespace sluice {

// A host device with up to `helpers` threads beside the calling one, as many as the system gives.
// The threads begin with the first batch that needs them. A batch whose copies have kTeamBytesMin
// bytes is cut into parts, and whoever is free takes the next part. Start returns once all of it is
// done, as with the host device alone. Helpers touch no memory between calls.
std::unique_ptr<Device> MakeTeamDevice(int helpers);

// Waking a thread takes as long as copying some 100 KiB.
inline constexpr int64_t kTeamBytesMin = int64_t{1} << 19;

// How many helpers each of `ranks` processes on this machine may have: 0 to kHelpersMax. No CPU
// that this process may use then has two helpers.
int HelpersOf(int64_t ranks);
inline constexpr int kHelpersMax = 7;  // memory is the limit beyond so many

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_BASE_TEAM_DEVICE_H_
