// The table of memory: finding, mapping and unmapping.
#include "fakes/fake_cuda_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fakes/fake_cuda_block.h"
#include "fakes/fake_cuda_stream.h"

namespace sluice::fake_cuda {
namespace {

constexpr size_t kPage = 4096;
// So many freed ranges keep their addresses, so that their use is seen for what it is.
constexpr size_t kRemembered = 512;

uintptr_t Address(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }

std::string Describe(const FakeCudaRange& range) {
  return std::to_string(range.bytes) + " bytes at " + Hex(range.pointer);
}

bool Overlaps(uintptr_t base, size_t bytes, const FakeCudaRange& range) {
  return Address(range.pointer) < base + bytes && base < Address(range.pointer) + range.bytes;
}

PlaceKind KindOf(const Allocation& allocation) {
  return allocation.kind == MemoryKind::kPinned ? PlaceKind::kPinned : PlaceKind::kDevice;
}

uintptr_t RoundUp(uintptr_t address, size_t alignment) {
  return (address + alignment - 1) / alignment * alignment;
}

uintptr_t FreshAddresses(size_t reserved, size_t alignment) {
  const size_t more = reserved + alignment;
  void* const all =
      mmap(nullptr, more, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (all == MAP_FAILED) return 0;
  const uintptr_t base = RoundUp(Address(all), alignment);
  const size_t before = base - Address(all);
  if (before > 0) munmap(all, before);
  if (more > before + reserved) munmap(PointerTo(base + reserved), more - before - reserved);
  return base;
}

// So that its use is seen for what it is, for a while.
void Remember(State& state, const FreedRange& range) {
  state.freed.push_back(range);
  if (state.freed.size() <= kRemembered) return;
  const FreedRange& oldest = state.freed.front();
  if (!oldest.is_part) munmap(PointerTo(oldest.base), oldest.reserved);
  state.freed.pop_front();
}

}  // namespace

std::optional<uintptr_t> TakeGap(Gaps& gaps, size_t bytes, size_t alignment) {
  const auto found = std::find_if(gaps.begin(), gaps.end(), [bytes, alignment](const auto& gap) {
    return RoundUp(gap.first, alignment) + bytes <= gap.first + gap.second;
  });
  if (found == gaps.end()) return std::nullopt;
  const auto [begin, length] = *found;
  gaps.erase(found);
  const uintptr_t taken = RoundUp(begin, alignment);
  if (taken > begin) gaps[begin] = taken - begin;
  const size_t rest = begin + length - taken - bytes;
  if (rest > 0) gaps[taken + bytes] = rest;
  return taken;
}

void AddGap(Gaps& gaps, uintptr_t begin, size_t bytes) {
  const auto next = gaps.find(begin + bytes);
  if (next != gaps.end()) {
    bytes += next->second;
    gaps.erase(next);
  }
  const auto after = gaps.upper_bound(begin);
  if (after != gaps.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == begin) {
      before->second += bytes;
      return;
    }
  }
  gaps[begin] = bytes;
}

const Allocation* Find(const State& state, const void* pointer) {
  auto next = state.allocations.upper_bound(Address(pointer));
  if (next == state.allocations.begin()) return nullptr;
  const Allocation& allocation = (--next)->second;
  // Its address space counts too: what comes close to it was meant for it.
  const size_t extent = std::max(allocation.bytes, allocation.reserved);
  return Address(pointer) < allocation.base + extent ? &allocation : nullptr;
}

Allocation* Find(State& state, const void* pointer) {
  return const_cast<Allocation*>(Find(std::as_const(state), pointer));
}

Place Locate(const State& state, const FakeCudaRange& range, const char* function) {
  const Allocation* const allocation = Find(state, range.pointer);
  const auto complain = [&](const std::string& what) {
    AddMisuse(std::string(function) + ": " + Describe(range) + " " + what);
    return Place{};
  };
  if (allocation != nullptr) {
    const uintptr_t offset = Address(range.pointer) - allocation->base;
    if (offset > allocation->bytes || range.bytes > allocation->bytes - offset) {
      return complain("reach beyond the " + std::to_string(allocation->bytes) +
                      " bytes allocated at " + Hex(PointerTo(allocation->base)));
    }
    return {KindOf(*allocation), allocation->host + offset, allocation->device};
  }
  for (const FreedRange& freed : state.freed) {
    if (Overlaps(freed.base, freed.reserved, range)) return complain("were freed");
  }
  if (FindBlock(state, range.pointer) != nullptr) {
    return complain("are in a block of small allocations, but in none that is allocated");
  }
  const auto next = state.allocations.upper_bound(Address(range.pointer));
  if (next != state.allocations.end() && Overlaps(next->second.base, next->second.bytes, range)) {
    return complain("are in part memory of the runtime");
  }
  auto* const host = const_cast<std::byte*>(static_cast<const std::byte*>(range.pointer));
  return {PlaceKind::kPageable, host, cudaInvalidDeviceId};
}

std::byte* DeviceBytes(const State& state, const FakeCudaRange& range, int device,
                       const char* function) {
  const Place place = Locate(state, range, function);
  if (place.kind == PlaceKind::kPageable) {
    AddMisuse(std::string(function) + ": " + Describe(range) +
              " are neither device memory nor pinned");
    return nullptr;
  }
  if (place.kind == PlaceKind::kDevice && place.device != device &&
      !state.devices[static_cast<size_t>(device)].peers.contains(place.device)) {
    AddMisuse(std::string(function) + ": " + Describe(range) + " are of device " +
              std::to_string(place.device) + ", which device " + std::to_string(device) +
              " has no access to");
    return nullptr;
  }
  return place.host;
}

void AddUse(State& state, const void* pointer, Use use) {
  Allocation* const allocation = Find(state, pointer);
  if (allocation == nullptr) return;
  std::vector<Use>& uses = allocation->uses;
  std::erase_if(uses, [&](const Use& old) {
    return old.stream == use.stream || old.sequence <= old.stream->seen_done;
  });
  uses.push_back(std::move(use));
}

uintptr_t TakeAddresses(State& state, size_t reserved, size_t alignment) {
  const std::optional<uintptr_t> base = TakeGap(state.reusable, reserved, alignment);
  return base.has_value() ? *base : FreshAddresses(reserved, alignment);
}

void GiveAddressesBack(State& state, const FreedRange& range) {
  if (!state.config.reuse_addresses) return Remember(state, range);
  if (!range.is_part) AddGap(state.reusable, range.base, range.reserved);
}

Allocation* MapDevice(State& state, MemoryKind kind, const std::shared_ptr<SharedMemory>& memory,
                      size_t bytes, int device) {
  // Drivers map device memory in large pages.
  const size_t reserved = RoundUp(bytes, kPage) + kPage;
  const uintptr_t base = kind == MemoryKind::kDevice ? TakeAddresses(state, reserved, kBlockBytes)
                                                     : FreshAddresses(reserved, kBlockBytes);
  if (base == 0) return nullptr;
  Allocation& allocation = state.allocations[base];
  allocation = {.kind = kind,
                .base = base,
                .bytes = bytes,
                .host = memory->data(),
                .device = device,
                .memory = memory,
                .reserved = reserved};
  return &allocation;
}

void Unmap(State& state, Lock& lock, uintptr_t base, const char* function) {
  SeenByOthers(state);
  const Allocation& allocation = state.allocations.at(base);
  const Use* unseen = nullptr;
  for (const Use& use : allocation.uses) {
    const bool has_failed = DeviceError(state, use.stream->device) != cudaSuccess;
    if (use.sequence > use.stream->seen_done && !has_failed) unseen = &use;
  }
  if (unseen != nullptr) {
    AddMisuse(std::string(function) + ": " + std::to_string(allocation.bytes) + " bytes at " +
              Hex(PointerTo(base)) + " that " + unseen->what +
              " uses, which nobody saw to be done");
  }
  const std::vector<Use> uses = allocation.uses;
  for (const Use& use : uses) WaitUntilDone(lock, {use.stream, use.sequence});
  const Allocation old = std::move(state.allocations.at(base));
  state.allocations.erase(base);
  if (old.kind == MemoryKind::kPinned) return;
  if (old.block != nullptr) return EndInBlock(state, old);
  const FreedRange range = {old.base, old.bytes, old.reserved};
  old.kind == MemoryKind::kImported ? Remember(state, range) : GiveAddressesBack(state, range);
}

}  // namespace sluice::fake_cuda

namespace sluice {

void* FakeCudaHostPointer(const void* pointer, size_t bytes) {
  auto [state, lock] = fake_cuda::LockState();
  constexpr const char* kName = "FakeCudaHostPointer";
  const fake_cuda::Place place = fake_cuda::Locate(state, {pointer, bytes}, kName);
  if (place.kind != fake_cuda::PlaceKind::kPageable) return place.host;
  fake_cuda::AddMisuse(std::string(kName) + ": " + fake_cuda::Hex(pointer) +
                       " is neither device memory nor pinned");
  return nullptr;
}

}  // namespace sluice
