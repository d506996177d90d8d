// Writing a file of results.
#ifndef SLUICE_BENCH_WORKLOAD_WRITE_FILE_H_
#define SLUICE_BENCH_WORKLOAD_WRITE_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace sluice::bench {

// Replaces the content of `path`. Unavailable with the reason.
absl::Status WriteFile(const std::string& path, const std::string& text);

// Empties those of `paths` that are not empty strings: before hours of work that could end in an
// error. Unavailable with the reason.
absl::Status MakeWritable(absl::Span<const std::string> paths);

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_WORKLOAD_WRITE_FILE_H_
