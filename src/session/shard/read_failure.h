// The one error of a read that failed for good, and what travels inside it.
#ifndef SLUICE_SRC_SESSION_SHARD_READ_FAILURE_H_
#define SLUICE_SRC_SESSION_SHARD_READ_FAILURE_H_

#include "absl/status/status.h"
#include "sluice/stream.h"

namespace sluice {

// "bytes 0 to 1048575 of shard-3.bin: gave up after 4 attempts: ...", from which ReadFailureOf gets
// the failure again.
absl::Status MakeReadFailure(absl::StatusCode code, const ReadFailure& failure);

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_SHARD_READ_FAILURE_H_
