// Slots that a rank packs pieces into, for peers that only the kernel lets reach its own memory.
#ifndef SLUICE_SRC_TRANSPORT_DIRECT_DIRECT_SLOTS_H_
#define SLUICE_SRC_TRANSPORT_DIRECT_DIRECT_SLOTS_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace sluice {

// How pieces go from one process's own memory to another one's: in one copy by the kernel, or in
// two by the processes, through a slot that both have mapped. The kernel walks the pages of the
// other process and copies them one by one. So on many machines its one copy takes longer than two.
enum class PrivateCopies {
  kMeasured,  // as this machine does it faster: SlotsAreFaster
  kByKernel,
  kBySlots,
};

// True if two copies through a slot take clearly less time here than one copy by the kernel.
// Measures at the first call, for about a millisecond. Thread: any.
bool SlotsAreFaster();

// Lies in shared memory of the rank that packs, zero at first, at a page's begin.
class DirectSlots {
 public:
  static constexpr uint32_t kSlots = 8;
  // Small enough that all slots stay in a core's second cache.
  static constexpr uint64_t kSlotBytes = 128 << 10;

  // By the rank that packs. A slot is free until it has been packed, and again once it is emptied.
  bool IsFree(uint32_t slot) const { return packed_[slot].load(std::memory_order_acquire) == 0; }
  void Pack(uint32_t slot) { packed_[slot].store(1, std::memory_order_relaxed); }
  // By the peer that was told of the slot, when it has copied what lies there. By the rank that
  // packs, for a peer that copies nothing any more.
  void Empty(uint32_t slot) { packed_[slot].store(0, std::memory_order_release); }

  std::byte* data(uint32_t slot) { return slots_[slot].data(); }

 private:
  alignas(4096) std::array<std::atomic<uint32_t>, kSlots> packed_;
  alignas(4096) std::array<std::array<std::byte, kSlotBytes>, kSlots> slots_;
};

}  // namespace sluice

#endif  // SLUICE_SRC_TRANSPORT_DIRECT_DIRECT_SLOTS_H_
