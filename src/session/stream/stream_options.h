// Checks a stream's options, on each rank and between ranks.
#ifndef SLUICE_SRC_SESSION_STREAM_STREAM_OPTIONS_H_
#define SLUICE_SRC_SESSION_STREAM_STREAM_OPTIONS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "sluice/stream.h"

namespace sluice {

// InvalidArgument says which one is wrong.
absl::Status CheckStreamOptions(const StreamOptions& options);

// OK if items can be delivered there; `accelerator` is the session's, or null.
absl::Status CheckStreamDevice(const StreamOptions& options, const Accelerator* accelerator);

// A hash of the options that must be equal on all ranks, as far as a session can see.
int64_t HashOfStream(const StreamOptions& options);

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_STREAM_STREAM_OPTIONS_H_
