// Numbers as people type them: sizes with suffixes.
#ifndef SLUICE_BENCH_WORKLOAD_NUMBERS_H_
#define SLUICE_BENCH_WORKLOAD_NUMBERS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "mesh/layout_text.h"  // lists and ranges
#include "sluice/tensor.h"

namespace sluice::bench {

// Reads "65536", "64K", "8M", "1.5G": powers of 1024, as in nccl-tests; an "iB" or "B" may follow.
// InvalidArgument if it is not such a number, is negative, has a fraction of a byte or does not
// fit.
absl::StatusOr<int64_t> ParseBytes(absl::string_view text);

// Reads a dtype by its name, or as nccl-tests and NumPy spell it: "float", "half", "int32".
absl::StatusOr<DType> ParseDTypeName(absl::string_view text);

// "8 MiB", "1.5 GiB", "12 B": for messages.
std::string BytesName(int64_t bytes);

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_WORKLOAD_NUMBERS_H_
