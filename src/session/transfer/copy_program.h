// The small copies of a run's buckets between tensors and slots, worked out once and replayed.
#ifndef SLUICE_SRC_SESSION_TRANSFER_COPY_PROGRAM_H_
#define SLUICE_SRC_SESSION_TRANSFER_COPY_PROGRAM_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "plan/plan.h"

namespace sluice {

class TransferRun;

// A piece is a stretch of bytes that are consecutive on both sides. It has its tensor and offsets,
// and no address, so a program holds for all views with the same strides. A bucket with other
// copies has no program, nor has one with large chunks, where work goes by bytes.
//
// Only for a device whose copies the calling thread carries out anyway.
class CopyProgram {
 public:
  explicit CopyProgram(size_t buckets) : packs_(buckets), unpacks_(buckets) {}

  // To be called when views get other strides, shapes or kinds.
  void Clear();

  // Copies all of the bucket's chunks from their sources to its slot. False: it has no program, and
  // nothing is copied. `run` is the one whose program this is; it has all its memory.
  bool Pack(const TransferRun& run, size_t bucket, std::byte* slot);
  // The same from the slot to destinations.
  bool Unpack(const TransferRun& run, size_t bucket, const std::byte* slot);
  // The same from sources to destinations, of a bucket that stays on this rank.
  bool CopyLocally(const TransferRun& run, size_t bucket);

 private:
  struct Piece {
    int32_t tensor = 0;
    int32_t bytes = 0;
    int64_t from = 0;  // offsets from where the tensor, or the slot, begins
    int64_t to = 0;
  };
  // The pieces of a bucket.
  struct Range {
    size_t first = 0;
    size_t count = 0;
    bool is_known = false;
  };

  // `piece_of` a chunk has no bytes where the chunk is no single piece.
  template <class PieceOf>
  Range Find(const TransferRun& run, size_t bucket, Range* range, const PieceOf& piece_of);
  template <class From, class To>
  bool Replay(const Range& range, const From& from, const To& to) const;

  std::vector<Piece> pieces_;
  std::vector<Range> packs_;    // by bucket; of local copies, too
  std::vector<Range> unpacks_;  // by bucket
};

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_TRANSFER_COPY_PROGRAM_H_
