// Checkpoints of one set of tensors with two sets of values: the older and the newer one. What a
// load finds is all of the one, all of the other, or an error.
#ifndef SLUICE_TESTS_CHECKPOINT_TWO_ROUNDS_H_
#define SLUICE_TESTS_CHECKPOINT_TWO_ROUNDS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "sluice/checkpoint.h"

namespace sluice::checkpoint_test {

inline constexpr uint64_t kOlder = 5;
inline constexpr uint64_t kNewer = 6;

// The bytes of each of the six tensors.
inline constexpr int64_t kTensorBytes = 16 * 12 * 4;

// The bytes of a file: all tensors in one, or `count` tensors in each.
inline constexpr int64_t kOneFile = 1 << 30;
constexpr int64_t TensorsPerFile(int count) { return count * kTensorBytes; }

// Saves the values of `round` from 1, 2, 3, 4, 6 or 12 ranks. The status of rank 0. `backwards`:
// the tensors are the other way round in the files.
absl::Status SaveRound(int ranks, uint64_t round, const std::string& directory,
                       int64_t shard_bytes_max, bool backwards = false);

// What a load from `uri` gives, in small pieces and with `base` for the rest: kOlder, kNewer, or
// one of these.
inline constexpr int64_t kNothing = 0;   // an error on all ranks
inline constexpr int64_t kMixture = -1;  // anything else
int64_t LoadRound(int ranks, const std::string& uri, absl::Status* status,
                  const CheckpointOptions& base = {});

}  // namespace sluice::checkpoint_test

#endif  // SLUICE_TESTS_CHECKPOINT_TWO_ROUNDS_H_
