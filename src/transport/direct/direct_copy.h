// One copy between this process's memory and a peer's, cut into pieces.
#ifndef SLUICE_SRC_TRANSPORT_DIRECT_DIRECT_COPY_H_
#define SLUICE_SRC_TRANSPORT_DIRECT_DIRECT_COPY_H_

#include <cstddef>
#include <cstdint>

#include "device/stores.h"
#include "transport/direct/direct_node.h"
#include "transport/direct/direct_place.h"

namespace sluice {

// Bytes of a piece: whole rows, as far as these are not longer than it should be.
uint64_t DirectPieceBytes(const DirectRows& from, const DirectRows& to);

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

}  // namespace sluice

#endif  // SLUICE_SRC_TRANSPORT_DIRECT_DIRECT_COPY_H_
