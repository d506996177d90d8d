// The contents of a place as a checkpoint: an index, or files that count without one.
#ifndef SLUICE_SRC_SESSION_CHECKPOINT_CHECKPOINT_CONTENTS_H_
#define SLUICE_SRC_SESSION_CHECKPOINT_CHECKPOINT_CONTENTS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "session/base/own_work.h"
#include "sluice/checkpoint.h"
#include "storage/file/file_identity.h"
#include "storage/open/source_address.h"

namespace sluice {

struct CheckpointContents {
  absl::optional<std::string> index_text;   // of a place that has an index
  absl::optional<FileIdentity> index_file;  // of an index in a directory
  std::vector<std::string> files;           // without an index: those that count
  // Over HTTP: the index is not for us, which is how some servers say that there is none.
  absl::Status index_refused;
};

// Waits for the storage; gives up once `stop` is set. Errors as FindTensors.
absl::StatusOr<CheckpointContents> LookForCheckpoint(const SourceAddress& address,
                                                     const CheckpointOptions& options,
                                                     const WorkStop& stop);

// Whether the directory has the same index as then, or none as then. True over HTTP. Waits as
// LookForCheckpoint does.
absl::StatusOr<bool> HasSameIndex(const SourceAddress& address, const CheckpointContents& contents,
                                  const CheckpointOptions& options, const WorkStop& stop);

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_CHECKPOINT_CHECKPOINT_CONTENTS_H_
