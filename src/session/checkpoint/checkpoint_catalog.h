// Finds the tensors of a checkpoint: its index, its headers, and where in which file each one lies.
#ifndef SLUICE_SRC_SESSION_CHECKPOINT_CHECKPOINT_CATALOG_H_
#define SLUICE_SRC_SESSION_CHECKPOINT_CHECKPOINT_CATALOG_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "session/base/own_work.h"
#include "sluice/checkpoint.h"
#include "storage/file/file_identity.h"
#include "storage/format/safetensors.h"
#include "storage/http/http_version.h"
#include "storage/open/source_address.h"

namespace sluice {

// The places of the tensors that were asked for.
struct CheckpointCatalog {
  struct Entry {
    int file = 0;  // a place in `files`
    DType dtype = DType::kF32;
    int64_t begin = 0;  // bytes, in the file
  };
  std::vector<std::string> files;
  // Identities of files in a directory, from when their headers were read, under the index that
  // names them. Ranks read these files, or fail.
  std::vector<FileIdentity> identities;
  std::vector<Entry> entries;  // as the tensors that were asked for
  int64_t ignored = 0;         // tensors of the checkpoint beside them
  int64_t header_bytes = 0;    // read for this
  // Versions of files over HTTP that the headers are of. Ranks read these versions, or fail.
  HttpVersions versions;
  // Over HTTP, not passed on: how each file begins, with its header or a part of its header.
  std::vector<std::string> beginnings;
};

// Reads the index and headers, and checks that the checkpoint has each tensor, in its shape, of a
// dtype that can be cast. The address may be of one file. Each file's header is read once, all
// headers at a time. An index tells which files are needed, and only their headers are read. Waits
// for the storage; gives up once `stop` is set. Any thread. NotFound: no checkpoint, no such file,
// or tensors that it lacks; InvalidArgument: what does not fit, or is no header; DataLoss: a file
// is too short, or of another save than its index; Unavailable: the directory gets one checkpoint
// after the other.
absl::StatusOr<CheckpointCatalog> FindTensors(const SourceAddress& address,
                                              absl::Span<const CheckpointTensor> tensors,
                                              const CheckpointOptions& options,
                                              const WorkStop& stop);

// Reads the index, or the headers where there is none. Waits, and has errors, as FindTensors.
absl::StatusOr<CheckpointInfo> FindInfo(const SourceAddress& address,
                                        const CheckpointOptions& options, const WorkStop& stop);

// Reads all headers. The tensors by name; some of them may be unreadable. Waits, and has errors, as
// FindTensors.
absl::StatusOr<std::vector<SafetensorsTensor>> FindAllTensors(const SourceAddress& address,
                                                              const CheckpointOptions& options,
                                                              const WorkStop& stop);

// As text, for other ranks.
std::string InfoText(const CheckpointInfo& info);
absl::StatusOr<CheckpointInfo> ParseInfoText(absl::string_view text);
std::string CatalogText(const CheckpointCatalog& catalog);
absl::StatusOr<CheckpointCatalog> ParseCatalogText(absl::string_view text);

// For a checkpoint that was read over HTTP: DataLoss if a file is of another version, or does not
// begin as it did. Adds what it reads to header_bytes. Waits as FindTensors does.
absl::Status CheckUnchanged(const SourceAddress& address, const CheckpointOptions& options,
                            const WorkStop& stop, CheckpointCatalog* catalog);

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_CHECKPOINT_CHECKPOINT_CATALOG_H_
