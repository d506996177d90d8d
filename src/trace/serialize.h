// A rank's trace as bytes, and back. The same on every machine: little-endian, fields of fixed
// size.
#ifndef SLUICE_SRC_TRACE_SERIALIZE_H_
#define SLUICE_SRC_TRACE_SERIALIZE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "trace/trace_event.h"

namespace sluice {

std::string EncodeTrace(const TraceContent& content);

// InvalidArgument if `bytes` are not what EncodeTrace gives.
absl::StatusOr<TraceContent> DecodeTrace(absl::string_view bytes);

}  // namespace sluice

#endif  // SLUICE_SRC_TRACE_SERIALIZE_H_
