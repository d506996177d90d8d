// A catalog that the caller gives, turned into tensors that lie row-major and whole in files.
#ifndef SLUICE_SRC_SESSION_CHECKPOINT_GIVEN_CATALOG_H_
#define SLUICE_SRC_SESSION_CHECKPOINT_GIVEN_CATALOG_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "session/checkpoint/checkpoint_catalog.h"
#include "sluice/checkpoint.h"

namespace sluice {

// The arrays that tensors are loaded from.
struct StoredArrays {
  // Each array as a tensor of its own: the slice of a wanted tensor that the array has, in the
  // order of dimensions that the file has. The views are parts of the wanted tensors' views.
  std::vector<CheckpointTensor> tensors;
  std::vector<CheckpointCatalog::Entry> entries;  // as `tensors`
  std::vector<std::string> files;
  std::vector<int64_t> file_ends;  // of each file, the bytes that the arrays end in
  int64_t ignored = 0;             // tensors of the catalog that nobody wants
};

// Checks the whole catalog. Finds the arrays of `tensors`, which are valid for `rank`. All ranks
// come to the same but for views. InvalidArgument: what is wrong in the catalog, or does not fit.
// NotFound: tensors that it lacks.
absl::StatusOr<StoredArrays> FindArrays(absl::Span<const CheckpointEntry> catalog,
                                        absl::Span<const CheckpointTensor> tensors, int rank);

// The names in a catalog, ascending. Errors of what is wrong in it, as FindArrays has them.
absl::StatusOr<std::vector<std::string>> NamesIn(absl::Span<const CheckpointEntry> catalog);

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_CHECKPOINT_GIVEN_CATALOG_H_
