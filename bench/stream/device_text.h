// The flag that says which memory items come to.
#ifndef SLUICE_BENCH_STREAM_DEVICE_TEXT_H_
#define SLUICE_BENCH_STREAM_DEVICE_TEXT_H_

#include "absl/status/status.h"
#include "stream/options.h"

namespace sluice::bench {

// Sets `device` and `device_gb_per_s` by `device_text`: cpu, cuda, emulated or emulated:18.
absl::Status ParseDeviceText(StreamBenchOptions* options);

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_STREAM_DEVICE_TEXT_H_
