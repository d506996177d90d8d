// Host memory that the library keeps for slots beside their blocks, and how many slots a budget
// holds when this memory counts. For slots of streams, checkpoints and transfers.
#ifndef SLUICE_SRC_SESSION_BASE_BOOKKEEPING_H_
#define SLUICE_SRC_SESSION_BASE_BOOKKEEPING_H_

#include <algorithm>
#include <cstdint>

namespace sluice {

// The most that is kept, each with what the allocator adds. The tests bookkeeping_test.cc, of
// streams, checkpoints and sessions, and mpi_tests/tiny_pieces_mpi_test.cc count it.

// For one slot, or one spare block: a read in its source, and the tables of its runner. ShardRunner
// and its ShardWork look ahead several pieces for each slot.
inline constexpr int64_t kSlotBookkeepingBytes = 2048;
// For one message that a slot may have under way: the tables of a transport, and the request of the
// library behind it. At the other end: word of a message whose receive has not been started.
inline constexpr int64_t kMessageBookkeepingBytes = 1536;
// For one item in a device buffer, and for that buffer.
inline constexpr int64_t kCellBookkeepingBytes = 512;
// Bookkeeping up to this size counts against no budget, so that slots of common sizes are as many
// as their blocks fit. Bookkeeping beyond it counts.
inline constexpr int64_t kFreeBookkeepingBytes = int64_t{2} << 20;

struct Bookkeeping {
  int64_t messages = 0;  // of one slot, at once
  int64_t cells = 0;     // items in device buffers
};

// How many blocks a budget holds: they, and what is kept for them beyond kFreeBookkeepingBytes, are
// not more than it. Never fewer than `least`, whose blocks fit. All counts and sizes are at most
// 2^60.
inline int64_t BlocksInBudget(int64_t budget_bytes, int64_t block_bytes, const Bookkeeping& kept,
                              int64_t least) {
  const int64_t each =
      block_bytes + kSlotBookkeepingBytes + kept.messages * kMessageBookkeepingBytes;
  const int64_t left = budget_bytes + kFreeBookkeepingBytes - kept.cells * kCellBookkeepingBytes;
  return std::max(least, std::min(budget_bytes / block_bytes, left / each));
}

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_BASE_BOOKKEEPING_H_
