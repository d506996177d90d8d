// Folds of contributions that lie in the memory of several processes of a node, piece by piece.
#ifndef SLUICE_SRC_TRANSPORT_DIRECT_DIRECT_FOLDER_H_
#define SLUICE_SRC_TRANSPORT_DIRECT_DIRECT_FOLDER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "device/fold_rows.h"
#include "device/stores.h"
#include "sluice/transport.h"
#include "transport/direct/direct_node.h"
#include "transport/direct/direct_place.h"

namespace sluice {

// The outcome of a fold's piece: 0, or an error number as in process_memory.h and the number of the
// contribution that could not be read.
struct DirectFoldResult {
  int error = 0;
  size_t contribution = 0;
};

// Thread: one.
class DirectFolder {
 public:
  // Allocates memory for folds of up to `contributions`. A larger fold allocates when it comes.
  void Reserve(size_t contributions);

  // The contributions of the next piece, in their order.
  void Clear() { sides_.clear(); }
  void AddOwn(const std::byte* data, const DirectRows& rows);
  void AddPeers(const DirectPeer& peer, const DirectPlace& place);

  // Writes what bytes [begin, end) come to; both lie between elements, as do the ends of all rows.
  // `stores` is not kAuto. Written bytes come before all that this thread stores afterwards.
  DirectFoldResult Run(const Fold& fold, std::byte* to, const DirectRows& to_rows, uint64_t begin,
                       uint64_t end, WriteHint stores);

 private:
  // A contribution: where it lies in this process, or in one whose memory the kernel alone reaches.
  struct Side {
    const std::byte* data = nullptr;
    const DirectPeer* peer = nullptr;
    uint64_t address = 0;
    DirectRows rows;
  };

  // All of `sides` lie in this process.
  void FoldStretches(const RowFold& fold, absl::Span<const Side> sides, std::byte* to,
                     const DirectRows& to_rows, uint64_t begin, uint64_t end, WriteHint stores);
  // A block that all contributions come to one after the other.
  DirectFoldResult FoldBlock(const Fold& fold, std::byte* to, const DirectRows& to_rows,
                             uint64_t begin, uint64_t end, WriteHint stores);
  // The place in a scratch block for the contribution's bytes from `begin` on.
  static std::byte* ScratchFor(const Side& side, uint64_t begin, std::byte* block);
  // A contribution's part of a block as it lies in this process: where it lies, or in a scratch
  // block that it is read into. An error number.
  static int Fetch(const Side& side, std::byte* scratch, uint64_t begin, uint64_t end, Side* here);

  std::vector<Side> sides_;
  std::vector<const std::byte*> stretches_;
  std::unique_ptr<std::byte[]> scratch_;  // two blocks
};

}  // namespace sluice

#endif  // SLUICE_SRC_TRANSPORT_DIRECT_DIRECT_FOLDER_H_
