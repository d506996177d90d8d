// Measures which way between private memory of two processes is faster.
#include "transport/direct/direct_slots.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <limits>

#include "base/clock.h"
#include "device/copy_rows.h"
#include "device/stream_rows.h"
#include "transport/direct/process_memory.h"

namespace sluice {
namespace {

// Both together are more than most cores' second cache holds.
constexpr uint64_t kBytes = 1 << 20;
constexpr uint64_t kPieces = kBytes / DirectSlots::kSlotBytes;
// Slots take a receiver's time and a sender's, who wait for each other now and then.
constexpr double kClearly = 0.9;

// Private memory in small pages, and touched: as the kernel finds most tensors.
class Pages {
 public:
  explicit Pages(uint64_t bytes)
      : bytes_(bytes),
        data_(mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0)) {}
  ~Pages() {
    if (ok()) munmap(data_, bytes_);
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  bool ok() const { return data_ != MAP_FAILED; }
  std::byte* At(uint64_t offset) const { return static_cast<std::byte*>(data_) + offset; }

 private:
  const uint64_t bytes_;
  void* const data_;
};

// The least of several times: others may have the core meanwhile.
template <typename F>
int64_t LeastNs(F copy) {
  int64_t least = std::numeric_limits<int64_t>::max();
  for (uint64_t piece = 0; piece < kPieces; ++piece) {
    const int64_t begin = MonotonicNs();
    if (!copy(piece * DirectSlots::kSlotBytes)) return std::numeric_limits<int64_t>::max();
    least = std::min(least, MonotonicNs() - begin);
  }
  return least;
}

bool Measure() {
  const Pages from(kBytes);
  const Pages to(kBytes);
  const Pages slot(DirectSlots::kSlotBytes);
  if (!from.ok() || !to.ok() || !slot.ok()) return false;
  const DirectRows piece = {DirectSlots::kSlotBytes, 0, 0};
  constexpr auto kPieceBytes = static_cast<int64_t>(DirectSlots::kSlotBytes);
  const int64_t by_kernel = LeastNs([&](uint64_t at) {
    return ReadProcessMemory(getpid(), reinterpret_cast<uint64_t>(from.At(at)), piece, to.At(at),
                             piece, 0, piece.bytes) == 0;
  });
  const int64_t by_slot = LeastNs([&](uint64_t at) {
    CopyRows(from.At(at), slot.At(0), {}, kPieceBytes, WriteHint::kPlain);
    CopyRows(slot.At(0), to.At(at), {}, kPieceBytes, WriteHint::kStreaming);
    StreamFence();
    return true;
  });
  return static_cast<double>(by_slot) < kClearly * static_cast<double>(by_kernel);
}

}  // namespace

bool SlotsAreFaster() {
  static const bool kFaster = Measure();
  return kFaster;
}

}  // namespace sluice
