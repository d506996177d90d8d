// A rank's trace as bytes, and back. The same on every machine: little-endian, fields of fixed
// size.
#ifndef SLUICE_SRC_TRACE_SERIALIZE_H_
#define SLUICE_SRC_TRACE_SERIALIZE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "trace/trace_event.h"

namespace sluice {

std::string EncodeTrace(int rank, int64_t dropped, absl::Span<const TraceEvent> events);

// InvalidArgument if `bytes` are not what EncodeTrace gives.
absl::StatusOr<TraceContent> DecodeTrace(absl::string_view bytes);

}  // namespace sluice

#endif  // SLUICE_SRC_TRACE_SERIALIZE_H_
