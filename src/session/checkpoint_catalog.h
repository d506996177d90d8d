// Finds the tensors of a checkpoint: its index, its headers, and where in which file each one lies.
#ifndef SLUICE_SRC_SESSION_CHECKPOINT_CATALOG_H_
#define SLUICE_SRC_SESSION_CHECKPOINT_CATALOG_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "session/stream_source.h"
#include "sluice/checkpoint.h"
#include "storage/source.h"

namespace sluice {

inline constexpr absl::string_view kCheckpointIndexName = "model.safetensors.index.json";
inline constexpr absl::string_view kCheckpointFileName = "model.safetensors";

// Where the tensors lie that were asked for.
struct CheckpointCatalog {
  struct Entry {
    int file = 0;  // a place in `files`
    DType dtype = DType::kF32;
    int64_t begin = 0;  // bytes, in the file
  };
  std::vector<std::string> files;
  std::vector<Entry> entries;  // as the tensors that were asked for
  int64_t ignored = 0;         // tensors of the checkpoint beside them
  int64_t header_bytes = 0;    // read for this
};

// Reads the index and headers, and checks that the checkpoint has each tensor, in its shape, of a
// dtype that can be cast. Each file's header is read once, all at a time, and only of files that
// are needed, where an index tells. Calls `pause` while it waits.
// NotFound: no checkpoint, no such file, or tensors that it lacks; InvalidArgument: what does not
// fit, or is no header; DataLoss: a file is too short.
absl::StatusOr<CheckpointCatalog> FindTensors(const SourceAddress& address,
                                              absl::Span<const CheckpointTensor> tensors,
                                              const CheckpointOptions& options,
                                              absl::FunctionRef<void()> pause);

// As text, for other ranks.
std::string CatalogText(const CheckpointCatalog& catalog);
absl::StatusOr<CheckpointCatalog> ParseCatalogText(absl::string_view text);

// A reader of `files`, `in_flight_max` reads at once.
absl::StatusOr<std::unique_ptr<Source>> OpenFiles(const SourceAddress& address,
                                                  const std::vector<std::string>& files,
                                                  const CheckpointOptions& options,
                                                  int in_flight_max);

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_CHECKPOINT_CATALOG_H_
