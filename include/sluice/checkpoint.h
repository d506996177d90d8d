// Checkpoints in the safetensors format, straight into and out of tensors that lie over meshes.
//
//   std::vector<CheckpointTensor> tensors = ...;  // names, shapes, layouts, and this rank's memory
//   absl::StatusOr<CheckpointStats> loaded = LoadCheckpoint(session, "file:/models/x", tensors);
//
// Each byte that any rank needs is read once per job, by one rank, which passes it on to the others
// that need it. Beside the tensors no rank holds more than the budget and 2 KiB for each tensor.
// Tensors that lie in boxes take as much again for each part that the boxes of all ranks cut them
// into. Tensors of one shape and layout share that.
#ifndef SLUICE_CHECKPOINT_H_
#define SLUICE_CHECKPOINT_H_

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "sluice/layout.h"
#include "sluice/s3.h"
#include "sluice/stream.h"
#include "sluice/tensor.h"

namespace sluice {

class Session;

// Equal on all ranks but for the view.
// * The name is that in the checkpoint. A load may have several tensors of one name, which is read
//   for each of them.
// * The shape is empty for a scalar: the layout and the view have the shape {1} then. A load takes
//   scalars and {1} for each other.
// * The layout has no Partial placements. Or boxes: those of all ranks, as in a transfer. A load
//   fills the boxes, whatever they leave out. In a save they cover the tensor, and of elements that
//   several ranks hold, one rank's are written.
struct CheckpointTensor : TensorPart {
  // The dtype that SaveCheckpoint writes; without it: `dtype`. A cast must exist. LoadCheckpoint
  // takes the dtype of the checkpoint.
  absl::optional<DType> file_dtype = absl::nullopt;
};

// An array in a file whose format Sluice does not read: a tensor of a checkpoint, or a box of one.
// Elements are little endian, without gaps.
struct CheckpointEntry {
  std::string tensor = {};  // its name
  std::string file = {};    // a path below the place that the load names, with "/" between folders
  int64_t begin = 0;        // bytes, in the file
  int64_t bytes = 0;        // of the whole array
  DType dtype = DType::kF32;
  std::vector<int64_t> shape = {};  // of the array; empty for a scalar
  // In elements; empty: dense row-major. They may have the dimensions in any other order.
  std::vector<int64_t> strides = {};
  // The indices in the tensor at which the array begins; empty: at 0.
  std::vector<int64_t> offset = {};
};

// How far a call is, for a display. Any thread may read it. In bytes of the files, of all tensors
// of the job that the call loads or saves.
struct CheckpointProgress {
  std::atomic<int64_t> total{0};  // 0: not known yet
  // Pieces come in the order of the files: up to the last one that this rank has had a part in.
  std::atomic<int64_t> done{0};
};

// May differ between ranks, unless it says otherwise.
struct CheckpointOptions {
  // Host memory for pieces that are read, written or exchanged.
  int64_t budget_bytes = int64_t{256} << 20;
  // Most pieces at once. Without it: as many as the budget holds.
  absl::optional<int64_t> slots = absl::nullopt;
  // Most bytes of one read, one write and one message. Equal on all ranks.
  int64_t piece_bytes = int64_t{8} << 20;
  RetryOptions retry = {};  // of reads
  // How long a rank that waits may hear of no progress on any rank, or nothing of another one.
  absl::Duration timeout = absl::Seconds(60);

  int connections = 64;      // at most, to one HTTP server: 1 .. 4096
  std::string ca_file = {};  // certificates to trust, instead of the system's
  S3Options s3 = {};         // of a place "s3://BUCKET/PREFIX"

  // SaveCheckpoint: most bytes of tensors in one file, but for a tensor that is larger. Equal on
  // all ranks.
  int64_t shard_bytes_max = int64_t{5} << 30;

  // SaveCheckpoint: keys and texts that go with the tensors, which ReadCheckpointInfo returns. They
  // are in the metadata of the index or, without an index, of the file. Equal on all ranks. Other
  // keys than "format", "total_size" and "sluice_save_id", and each once.
  std::vector<std::pair<std::string, std::string>> metadata = {};

  // LoadCheckpoint and ReadCheckpointInfo: the arrays of a checkpoint that has no index and no
  // headers of safetensors. The place is a directory, or an address with files below it. The arrays
  // of a tensor are all of it, each element once. Equal on all ranks.
  std::vector<CheckpointEntry> catalog = {};

  // The call writes its progress here. Must outlive the call.
  CheckpointProgress* progress = nullptr;
};

// This rank's, unless it says otherwise.
struct CheckpointStats {
  int64_t tensors = 0;          // of the job
  int64_t tensors_ignored = 0;  // in the checkpoint, and not asked for
  int64_t files = 0;            // of the job: read from or written
  int64_t pieces = 0;           // that this rank is a member of
  int64_t file_pieces = 0;      // that it read or wrote: summed over ranks, all pieces
  int64_t file_bytes = 0;       // of these: summed over ranks, the bytes of the tensors
  int64_t bytes_read = 0;       // from storage, alignment and retries included; file_bytes where
                                // ranks share a mapping
  int64_t header_bytes = 0;     // read by rank 0, beside them
  int64_t bytes = 0;            // of the local tensors, as they lie in the files
  int64_t sent_bytes = 0;       // to other ranks
  int64_t retries = 0;
  int64_t slots_max = 0;  // the limit
  int64_t slots_peak = 0;
  int64_t budget_bytes = 0;  // the limit
  int64_t budget_bytes_peak = 0;
  int64_t piece_bytes = 0;    // the largest piece
  absl::Duration seconds;     // the whole call
  absl::Duration planning;    // of that, before the first piece
  absl::Duration reading;     // sums over pieces: from request to answer,
  absl::Duration exchanging;  // while bytes cross between ranks,
  absl::Duration copying;     // into tensors or out of them,
  absl::Duration writing;     // into files,
  absl::Duration syncing;     // until files are on the storage and have their names
};

// The names and texts of a checkpoint.
struct CheckpointInfo {
  std::vector<std::string> tensors;  // ascending
  // Texts of the index or, without an index, of the first file.
  std::vector<std::pair<std::string, std::string>> metadata;
};

// Collective; blocks, and drives streams meanwhile. Rank 0 reads the index, or the headers where
// there is none, and all ranks get the same. Places, options and errors are those of
// LoadCheckpoint. Thread: the session's.
absl::StatusOr<CheckpointInfo> ReadCheckpointInfo(Session* session, const std::string& uri,
                                                  const CheckpointOptions& options = {});

// Collective; blocks, and drives streams meanwhile. No run may be in flight. Fills the views from a
// checkpoint: "file:DIR" (reads past the page cache), "buffered:DIR" (through it), "mmap:DIR",
// "http://HOST/BASE/", "https://HOST/BASE/" or "s3://BUCKET/PREFIX". The checkpoint is the files
// that model.safetensors.index.json names. Without an index it is model.safetensors. Without
// either, in a directory or a store of S3, it is all *.safetensors that are not shards of a save
// (docs/checkpoints.md). A place that ends in ".safetensors" is one file, which is the checkpoint.
// Elements are cast to the tensors' dtypes.
// With "mmap:", ranks that are all on one node copy their parts from the mapping. On several nodes
// this holds for bytes that one rank alone wants. The process then gets a handler of SIGBUS, as
// StreamSource::uri says. Without an accelerator, up to 7 threads of the call's own help to copy:
// CPUs that the process may use, over the ranks of its node, less one.
// Bad input is found before anything is written, and every rank gets an error. InvalidArgument:
// tensors, options, views, a header. ResourceExhausted: boxes cut a tensor into too many parts.
// NotFound: no checkpoint, or tensors that it lacks. DataLoss: a file is too short, or of another
// save than its index. FailedPrecondition: ranks disagree, or a run is in flight. Later failures
// reach every rank, too, and leave destinations undefined; the session goes on. DataLoss names a
// file that was replaced or written to meanwhile. So beside a save, a load gives one of the
// checkpoints whole, or an error. DeadlineExceeded for a rank that does not call, or goes silent:
// that poisons the session. How long rank 0 takes for the index and the headers counts against
// nobody. Thread: the session's.
absl::StatusOr<CheckpointStats> LoadCheckpoint(Session* session, const std::string& uri,
                                               absl::Span<const CheckpointTensor> tensors,
                                               const CheckpointOptions& options = {});

// The reverse: collective; blocks, and drives streams. Writes the tensors into `directory`, which
// all ranks see. InvalidArgument: its name ends in ".safetensors", as a load reads one file there.
// The directory is made if its parent is there. The files are model.safetensors, or
// model-00001-of-0000N.safetensors and so on with an index. If files have these names already,
// shards have eight more digits in theirs. One replica of several is written. Whole pages of files
// go past the page cache, where the file system can do that.
// The directory has the older checkpoint until one file takes or loses its name, and the newer one
// from then on. This holds if a rank is killed or the system stops (docs/checkpoints.md). Older
// files are removed after that. Errors reach every rank as those of LoadCheckpoint do. They leave
// the older checkpoint, unless they begin with "the new checkpoint is in place".
// FailedPrecondition also for a directory into which somebody else saves. On a file system without
// flock this error may come at the end. The directory then has the other save's checkpoint, unless
// the error begins as said. Thread: the session's.
absl::StatusOr<CheckpointStats> SaveCheckpoint(Session* session, const std::string& directory,
                                               absl::Span<const CheckpointTensor> tensors,
                                               const CheckpointOptions& options = {});

}  // namespace sluice

#endif  // SLUICE_CHECKPOINT_H_
