// The safetensors files of a checkpoint in a directory, read without the library.
#ifndef SLUICE_BENCH_CHECKPOINT_PLAIN_FILES_H_
#define SLUICE_BENCH_CHECKPOINT_PLAIN_FILES_H_

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

namespace sluice::bench {

// One of the files that count, and which of its tensors do: a file may hold more than those for
// which the index names it.
struct PlainFile {
  std::string path;
  absl::optional<std::set<std::string>> tensors = absl::nullopt;  // without an index: all

  bool Counts(const std::string& tensor) const { return !tensors || tensors->contains(tensor); }
};

// The files that count, as docs/checkpoints.md has it: those that an index names; without one
// model.safetensors; without either, all *.safetensors. NotFound if there are none.
absl::StatusOr<std::vector<PlainFile>> CheckpointFiles(const std::string& directory);

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
