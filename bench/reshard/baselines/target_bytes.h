// Targets as bytes, for the baselines that know beforehand what these are to hold.
#ifndef SLUICE_BENCH_RESHARD_BASELINES_TARGET_BYTES_H_
#define SLUICE_BENCH_RESHARD_BASELINES_TARGET_BYTES_H_

#include <cstddef>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "reshard/baselines/baseline.h"

namespace sluice::bench {

// All of a dense tensor; empty if it has no memory.
absl::Span<std::byte> BytesOf(const TensorView& view);

// Collective: fills the targets by messages.
absl::Status FillOnce(const BaselineJob& job);

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_RESHARD_BASELINES_TARGET_BYTES_H_
