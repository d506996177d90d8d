// The tables of the fake CUDA runtime in this process. One lock guards them all.
#ifndef SLUICE_TESTS_FAKES_FAKE_CUDA_STATE_H_
#define SLUICE_TESTS_FAKES_FAKE_CUDA_STATE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "fakes/fake_cuda.h"

namespace sluice::fake_cuda {

struct Block;
struct Event;
struct Stream;
class SharedMemory;

// An operation that uses an allocation.
struct Use {
  std::shared_ptr<Stream> stream;
  uint64_t sequence;
  const char* what;
};

enum class MemoryKind { kDevice, kPinned, kImported };

// No other allocation of this process has had it.
inline uint64_t NextAllocationId() {
  static std::atomic<uint64_t> last = 0;
  return ++last;
}

// Stretches that are free: their lengths, by where they begin. No two of them touch.
using Gaps = std::map<uintptr_t, size_t>;

struct Allocation {
  uint64_t id = NextAllocationId();
  MemoryKind kind = MemoryKind::kDevice;
  uintptr_t base = 0;  // as the device sees it; the host too, if pinned
  size_t bytes = 0;
  std::byte* host = nullptr;
  int device = 0;
  std::shared_ptr<SharedMemory> memory = {};  // none if pinned
  size_t reserved = 0;                        // address space at base
  std::shared_ptr<Block> block = {};          // that it shares with others, if it does
  bool is_of_pool = false;                    // no other process can open it
  // Of an imported one, which may be a block: where its owner has it, and how often what was
  // opened.
  bool is_imported_block = false;
  uintptr_t owner_base = 0;
  std::map<uintptr_t, int> opens = {};
  std::vector<Use> uses = {};  // the last of each stream that may not be done yet
};

struct FreedRange {
  uintptr_t base;
  size_t bytes;
  size_t reserved;
  bool is_part = false;  // of a block, with which its address space goes
};

// Memory that was freed while others had it open.
struct HeldMemory {
  int device;
  size_t bytes;
  std::shared_ptr<SharedMemory> memory;
};

struct DeviceState {
  cudaError_t error = cudaSuccess;  // sticky
  bool has_context = false;         // its primary one
  size_t allocated = 0;
  std::set<int> peers;            // whose memory it may use
  std::set<std::string> kernels;  // that are loaded
  std::shared_ptr<Stream> null_stream;
};

struct State {
  std::mutex mutex;
  FakeCudaConfig config;
  std::vector<DeviceState> devices;
  std::map<uintptr_t, Allocation> allocations;  // by base
  std::vector<std::shared_ptr<Block>> blocks;   // with allocations in them
  std::deque<FreedRange> freed;
  Gaps reusable;  // address space of what was freed
  std::vector<HeldMemory> held;
  std::map<uintptr_t, std::shared_ptr<Stream>> streams;  // by handle, also destroyed ones
  std::map<uintptr_t, std::shared_ptr<Event>> events;
  size_t events_before = 0;  // left when the configuration began
  std::set<uintptr_t> destroyed_events;
  int captures = 0;                // streams that are being captured
  uintptr_t next_handle = 0x1000;  // never the same again, so that old ones are recognized
};

using Lock = std::unique_lock<std::mutex>;

// Lives until the process has ended.
State& TheState();

// auto [state, lock] = LockState();
struct LockedState {
  State& state;
  Lock lock;
};
inline LockedState LockState() { return {TheState(), Lock(TheState().mutex)}; }

// The number by which all processes know a device of this one's.
int CommonNumber(const State& state, int device);

// Needs no lock, and may be called under the state's.
void AddMisuse(std::string what);
std::vector<std::string> TakeMisuse();

uintptr_t NewHandle(State& state);
std::string Hex(const void* pointer);
// Addresses and handles are keys of the fake's tables, so they are kept as numbers.
inline void* PointerTo(uintptr_t number) {
  return reinterpret_cast<void*>(number);  // NOLINT(performance-no-int-to-ptr): see above
}

}  // namespace sluice::fake_cuda

#endif  // SLUICE_TESTS_FAKES_FAKE_CUDA_STATE_H_
