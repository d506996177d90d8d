// Writing a file of results.
#ifndef SLUICE_BENCH_WORKLOAD_WRITE_FILE_H_
#define SLUICE_BENCH_WORKLOAD_WRITE_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace sluice::bench {

// Replaces the content of `path`. Unavailable with the reason.
absl::Status WriteFile(const std::string& path, const std::string& text);

// A file that is read, or written otherwise, by the name of its flag.
struct NamedFile {
  absl::string_view flag;
  std::string path;
};

// Whether the results file `*json_file` is none of `others`. If it is one, InvalidArgument names
// its flag, and `*json_file` is emptied, so that nothing is written. Empty paths are no files.
absl::Status KeepApart(std::string* json_file, absl::Span<const NamedFile> others);

// Empties those of `paths` that are not empty strings: before hours of work that could end in an
// error. Unavailable with the reason.
absl::Status MakeWritable(absl::Span<const std::string> paths);

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_WORKLOAD_WRITE_FILE_H_
