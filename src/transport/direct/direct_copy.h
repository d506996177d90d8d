// One copy between this process's memory and a peer's, cut into pieces.
#ifndef SLUICE_SRC_TRANSPORT_DIRECT_DIRECT_COPY_H_
#define SLUICE_SRC_TRANSPORT_DIRECT_DIRECT_COPY_H_

#include <cstddef>
#include <cstdint>

#include "device/stores.h"
#include "transport/direct/direct_node.h"
#include "transport/direct/direct_place.h"

namespace sluice {

// Small enough that both ends get their share of a bucket and end together, and that a piece stays
// in a core's cache.
inline constexpr uint64_t kPieceBytesMax = 256 << 10;

// Bytes of a piece, `bytes_max` at most: whole rows, as far as these are not longer than it should
// be.
uint64_t DirectPieceBytes(const DirectRows& from, const DirectRows& to,
                          uint64_t bytes_max = kPieceBytesMax);

// True if the kernel has far more short stretches to look up at `remote` than at `other`. The end
// that asks looks up those of `remote`, and the other end those of `other`, the asking end's own
// place. Looking up a stretch costs more than copying it.
bool CostsMore(const DirectPlace& remote, const DirectPlace& other);

// Copies bytes [begin, end) from the peer's memory to this process's, or back. The copy goes
// through a mapping where there is one, by `stores` (not kAuto), and otherwise by the kernel.
// Returns 0, or as in process_memory.h. Copied bytes come before all that this thread stores
// afterwards.
int CopyFromPeer(const DirectPeer& peer, const DirectPlace& from, std::byte* to,
                 const DirectRows& to_rows, uint64_t begin, uint64_t end, WriteHint stores);
int CopyToPeer(const DirectPeer& peer, const std::byte* from, const DirectRows& from_rows,
               const DirectPlace& to, uint64_t begin, uint64_t end, WriteHint stores);

// Copies bytes [begin, end) into a slot that holds as many, or out of such a slot, by `stores` (not
// kAuto). Copied bytes come before all that this thread stores afterwards.
void PackPiece(const std::byte* from, const DirectRows& rows, uint64_t begin, uint64_t end,
               std::byte* slot);
void UnpackPiece(const std::byte* slot, std::byte* to, const DirectRows& rows, uint64_t begin,
                 uint64_t end, WriteHint stores);

}  // namespace sluice

#endif  // SLUICE_SRC_TRANSPORT_DIRECT_DIRECT_COPY_H_
