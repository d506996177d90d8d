// Fuzz target: whatever another rank sends for a trace is refused, or is what it would send again.
#include <string>

#include "fuzz/fuzz_bytes.h"
#include "trace/serialize.h"

SLUICE_FUZZ_TARGET(trace) {
  const absl::string_view bytes = sluice::TextOf(data, size);
  const absl::StatusOr<sluice::TraceContent> content = sluice::DecodeTrace(bytes);
  if (!content.ok()) {
    sluice::CheckError(content.status());
    return 0;
  }
  // Flags are written as 0 and 1, whatever came.
  const std::string written = sluice::EncodeTrace(*content);
  SLUICE_CHECK(written.size() == bytes.size(), "a trace that is written at another length");
  const absl::StatusOr<sluice::TraceContent> again = sluice::DecodeTrace(written);
  SLUICE_CHECK(again.ok() && sluice::EncodeTrace(*again) == written,
               "a trace that is read as another one");
  return 0;
}
