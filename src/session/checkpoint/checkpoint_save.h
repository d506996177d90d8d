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

class CheckpointSaveWork final : public CheckpointWork {
 public:
  using CheckpointWork::CheckpointWork;

  absl::Status Fill(const ShardPiece& piece, std::byte* data, CopyQueue* copies) override;
  void AddMessages(const ShardPiece& piece, std::byte* data, uint64_t cookie,
                   std::vector<TransportOp>* messages) override;
  absl::Status Drain(const ShardPiece& piece, std::byte* data, CopyQueue* copies) override;
  WriteOp WriteOf(const ShardPiece& piece) override;

 private:
  StageSet StagesOf(const CheckpointPiece& piece) const override;
};

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_CHECKPOINT_CHECKPOINT_SAVE_H_
