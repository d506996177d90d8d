// The cookies of operations, which tell the runner what it has started.
#ifndef SLUICE_SRC_SESSION_BASE_OPERATION_COOKIE_H_
#define SLUICE_SRC_SESSION_BASE_OPERATION_COOKIE_H_

#include <cstddef>
#include <cstdint>

#include "engine/engine.h"

namespace sluice {

// An operation's cookie holds its bucket's first slot, which is below 2^31, and its ticket.
inline uint64_t CookieOf(size_t slot, Ticket ticket) { return uint64_t{slot} << 32 | ticket; }
inline size_t SlotOf(uint64_t cookie) { return static_cast<size_t>(cookie >> 32); }
inline Ticket TicketOf(uint64_t cookie) { return static_cast<Ticket>(cookie); }
// The cookie of a mark, which is no bucket's.
inline constexpr uint64_t kMarkCookie = uint64_t{1} << 63;

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_BASE_OPERATION_COOKIE_H_
