// Writing a file of results.
#ifndef SLUICE_BENCH_WORKLOAD_WRITE_FILE_H_
#define SLUICE_BENCH_WORKLOAD_WRITE_FILE_H_

#include <string>

#include "absl/status/status.h"

namespace sluice::bench {

// Replaces the content of `path`. Unavailable with the reason.
absl::Status WriteFile(const std::string& path, const std::string& text);

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_WORKLOAD_WRITE_FILE_H_
