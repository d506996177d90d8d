// Models, systems and cases that come with the programs, found by their names.
#ifndef SLUICE_BENCH_WORKLOAD_SHIPPED_FILE_H_
#define SLUICE_BENCH_WORKLOAD_SHIPPED_FILE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace sluice::bench {

// What `name` says. A name without a slash that is no file here is looked for in
// ../share/sluice/FOLDER, seen from the program's own folder, also without its ".json":
// "llama-3-8b" in "models". NotFound says where it was looked for.
absl::StatusOr<std::string> ReadShippedFile(const std::string& name, absl::string_view folder);

// The same with a share/sluice that the caller names.
absl::StatusOr<std::string> ReadShippedFile(const std::string& name, absl::string_view folder,
                                            const std::string& share);

// The path of `name` in share/sluice, whether it is there or not.
std::string ShippedPath(absl::string_view name);

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_WORKLOAD_SHIPPED_FILE_H_
