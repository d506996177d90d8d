// Saves local tensors into files: each member sends its part to the file rank, which writes the
// box.
#ifndef SLUICE_SRC_SESSION_CHECKPOINT_CHECKPOINT_SAVE_H_
#define SLUICE_SRC_SESSION_CHECKPOINT_CHECKPOINT_SAVE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "session/checkpoint/checkpoint_work.h"
#include "storage/file/atomic_file.h"

namespace sluice {

// This rank's writing into the temporary files that rank 0 has made.
class CheckpointWriter {
 public:
  struct File {
    std::string temporary;  // its path
    int64_t bytes = 0;      // as long as rank 0 has made it
  };
  explicit CheckpointWriter(std::vector<File> files)
      : files_(std::move(files)), open_(files_.size()) {}

  // Opens the file if need be. Waits for the file system.
  absl::Status Write(int file, int64_t offset, absl::Span<const std::byte> bytes);

  // Waits until all that was written is on the storage. Any thread, while there are no writes.
  absl::Status Sync();

  int64_t writing_ns() const { return writing_ns_; }

 private:
  std::vector<File> files_;
  std::vector<absl::optional<AtomicFile>> open_;
  int64_t writing_ns_ = 0;
};

class CheckpointSaveWork final : public CheckpointWork {
 public:
  CheckpointSaveWork(CheckpointPlan* plan, int rank, const std::vector<CheckpointPlace>* places,
                     int window, CheckpointWriter* writer)
      : CheckpointWork(plan, rank, places, window), writer_(writer) {}

  absl::Status Fill(const ShardPiece& piece, std::byte* data, CopyQueue* copies) override;
  void AddMessages(const ShardPiece& piece, std::byte* data, uint64_t cookie,
                   std::vector<TransportOp>* messages) override;
  absl::Status Drain(const ShardPiece& piece, std::byte* data, CopyQueue* copies) override;
  absl::Status Done(const ShardPiece& piece, const std::byte* data) override;

 private:
  StageSet StagesOf(const CheckpointPiece& piece) const override;

  CheckpointWriter* const writer_;
};

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_CHECKPOINT_CHECKPOINT_SAVE_H_
