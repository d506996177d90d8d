// The safetensors files of a checkpoint in a directory, read without the library.
#ifndef SLUICE_BENCH_CHECKPOINT_PLAIN_FILES_H_
#define SLUICE_BENCH_CHECKPOINT_PLAIN_FILES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace sluice::bench {

// The paths of the files that count, as docs/checkpoints.md has it: those that an index names;
// without one model.safetensors; without either, all *.safetensors. NotFound if there are none.
absl::StatusOr<std::vector<std::string>> CheckpointFiles(const std::string& directory);

// A tensor, and where in its file its bytes lie.
struct PlainTensor {
  std::string name;
  std::string dtype = {};  // as the header spells it
  std::vector<int64_t> shape = {};
  int64_t begin = 0;
  int64_t end = 0;
};

// Of a whole file. DataLoss, or InvalidArgument, says what is wrong with the header.
absl::StatusOr<std::vector<PlainTensor>> ParsePlainHeader(absl::string_view file);

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_CHECKPOINT_PLAIN_FILES_H_
