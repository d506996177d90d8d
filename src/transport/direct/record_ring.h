// Bytes from one process to one other, through memory that both have mapped.
#ifndef SLUICE_SRC_TRANSPORT_DIRECT_RECORD_RING_H_
#define SLUICE_SRC_TRANSPORT_DIRECT_RECORD_RING_H_

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "transport/near_records.h"

namespace sluice {

// Lies in shared memory, zero at first. Writes and reads have a multiple of kUnit bytes. `head` and
// `tail` are the caller's own counts of bytes that it has read or written. The other process may
// spoil the bytes in the ring, but not these counts.
class RecordRing {
 public:
  static constexpr uint64_t kBytes = 16384;
  static constexpr uint64_t kUnit = 8;
  // More than any count of bytes: what the other process says makes no sense.
  static constexpr uint64_t kNonsense = ~uint64_t{0};

  // By the writer, which has written `tail` bytes: the room there is.
  uint64_t Room(uint64_t tail) const {
    const uint64_t used = tail - head_.load(std::memory_order_acquire);
    return used > kBytes || used % kUnit != 0 ? kNonsense : kBytes - used;
  }
  // `bytes` is at most Room.
  void Write(uint64_t tail, const std::byte* data, uint64_t bytes) {
    const uint64_t at = tail % kBytes;
    const uint64_t first = std::min(bytes, kBytes - at);
    std::memcpy(&bytes_[at], data, first);
    if (bytes > first) std::memcpy(bytes_.data(), data + first, bytes - first);
    tail_.store(tail + bytes, std::memory_order_release);
  }

  // By the reader, which has read `head` bytes: what there is to read.
  uint64_t Available(uint64_t head) const {
    const uint64_t there = tail_.load(std::memory_order_acquire) - head;
    return there > kBytes || there % kUnit != 0 ? kNonsense : there;
  }
  // `bytes` is at most Available. Null `data`: drops them.
  void Read(uint64_t head, std::byte* data, uint64_t bytes) {
    const uint64_t at = head % kBytes;
    const uint64_t first = std::min(bytes, kBytes - at);
    if (data != nullptr) {
      std::memcpy(data, &bytes_[at], first);
      if (bytes > first) std::memcpy(data + first, bytes_.data(), bytes - first);
    }
    head_.store(head + bytes, std::memory_order_release);
  }

  // By the reader: it has taken one more record of `kind`.
  void Take(int kind) { taken_[static_cast<size_t>(kind)].fetch_add(1, std::memory_order_release); }
  uint32_t taken(int kind) const {
    return taken_[static_cast<size_t>(kind)].load(std::memory_order_acquire);
  }

 private:
  alignas(64) std::atomic<uint64_t> head_;
  std::array<std::atomic<uint32_t>, NearRecords::kKinds> taken_;
  alignas(64) std::atomic<uint64_t> tail_;
  alignas(64) std::array<std::byte, kBytes> bytes_;
};

}  // namespace sluice

#endif  // SLUICE_SRC_TRANSPORT_DIRECT_RECORD_RING_H_
