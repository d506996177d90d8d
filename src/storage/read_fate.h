// The fate of one attempt at one item under injected latency and faults. It is a pure function of
// a seed, so that a run can be repeated whatever its timing.
#ifndef SLUICE_SRC_STORAGE_READ_FATE_H_
#define SLUICE_SRC_STORAGE_READ_FATE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "storage/fault_spec.h"

namespace sluice {

struct DelayOptions {
  uint64_t seed = 0;
  int64_t latency_ns = 0;   // of each read, from its start to its event
  double jitter = 0;        // uniform, within this share of the latency on either side; 0 to 1
  double tail_percent = 0;  // of reads, whose latency is multiplied by tail_factor
  double tail_factor = 1;
  FaultSpec faults = {};
};

// InvalidArgument for negative latencies and factors, and shares outside their ranges.
absl::Status CheckDelayOptions(const DelayOptions& options);

struct ReadFate {
  enum class Fault { kNone, kTransient, kPermanent, kShort, kHang };
  int64_t latency_ns = 0;
  Fault fault = Fault::kNone;
};

ReadFate FateOf(const DelayOptions& options, int64_t item, int attempt);

}  // namespace sluice

#endif  // SLUICE_SRC_STORAGE_READ_FATE_H_
