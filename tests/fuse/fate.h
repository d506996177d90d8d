// What is to happen to each read of the slow file system: its delay and its fault, by seed.
#ifndef SLUICE_TESTS_FUSE_FATE_H_
#define SLUICE_TESTS_FUSE_FATE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace sluice::fuse {

// Shares are of 1. A read is one request of the kernel's, at most 1 MiB.
struct FatePlan {
  uint64_t seed = 0;
  double latency_ms = 0;      // of a read
  double jitter = 0;          // evenly, up to so much of the latency more or less; at most 1
  double tail_percent = 0;    // of the reads, which take
  double tail_factor = 10;    // times as long
  double eio_share = 0;       // of attempts: an error
  double dead_share = 0;      // of offsets: an error at every attempt
  double short_share = 0;     // of attempts: half of what was asked for
  double truncate_share = 0;  // of offsets: from the first read on the file ends half-way there
};

enum class Outcome : uint8_t { kGood, kError, kShort, kTruncated };

struct Fate {
  int64_t delay_ns = 0;
  Outcome outcome = Outcome::kGood;
};

// Of attempt `attempt`, from 0, to read at `offset` of the object at `path`. Equal arguments, equal
// fate: whatever else is read, and in which order.
Fate FateOf(const FatePlan& plan, absl::string_view path, uint64_t offset, int attempt);

// Reads "eio:0.01,dead:0.001,short:0.1,truncate:0.001" into the shares. InvalidArgument names what
// it does not know.
absl::Status ParseFaults(const std::string& text, FatePlan* plan);

}  // namespace sluice::fuse

#endif  // SLUICE_TESTS_FUSE_FATE_H_
