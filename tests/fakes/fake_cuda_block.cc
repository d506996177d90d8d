// Taking space from blocks, and giving it back.
#include "fakes/fake_cuda_block.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <thread>

#include "fakes/fake_cuda_memory.h"

namespace sluice::fake_cuda {
namespace {

// Behind the bytes of a block: how often each of its units was opened.
constexpr size_t kCountsBytes = kBlockBytes / kPartUnit * sizeof(std::atomic<int32_t>);

size_t InUnits(size_t bytes) { return (bytes + kPartUnit - 1) / kPartUnit * kPartUnit; }

// Ranks that are threads of one process share nothing, as processes do.
bool MayUse(const State& state, const Block& block, int device) {
  const bool is_ours = block.maker == std::this_thread::get_id() || !state.config.same_process_ipc;
  return is_ours && block.device == device;
}

// Where there is room for so many bytes, which are taken then.
std::optional<size_t> Take(Block& block, size_t bytes) {
  const std::optional<size_t> gap = TakeGap(block.gaps, bytes, kPartUnit);
  if (gap.has_value()) return gap;
  if (bytes > kBlockBytes - block.unused) return std::nullopt;
  const size_t offset = block.unused;
  block.unused += bytes;
  return offset;
}

Allocation* AllocateIn(State& state, const std::shared_ptr<Block>& block, size_t bytes) {
  const std::optional<size_t> offset = Take(*block, InUnits(bytes));
  if (!offset.has_value()) return nullptr;
  ++block->parts;
  Allocation& allocation = state.allocations[block->base + *offset];
  allocation = {.kind = MemoryKind::kDevice,
                .base = block->base + *offset,
                .bytes = bytes,
                .host = block->memory->data() + *offset,
                .device = block->device,
                .memory = block->memory,
                .reserved = InUnits(bytes),
                .block = block};
  return &allocation;
}

}  // namespace

Allocation* AllocateInBlock(State& state, size_t bytes, int device) {
  for (const std::shared_ptr<Block>& block : state.blocks) {
    if (!MayUse(state, *block, device)) continue;
    Allocation* const made = AllocateIn(state, block, bytes);
    if (made != nullptr) return made;
  }
  return nullptr;
}

Allocation* AllocateInNewBlock(State& state, size_t bytes, int device) {
  const std::shared_ptr<SharedMemory> memory = SharedMemory::Create(kBlockBytes + kCountsBytes);
  if (memory == nullptr) return nullptr;
  const uintptr_t base = TakeAddresses(state, kBlockBytes, kBlockBytes);
  if (base == 0) return nullptr;
  const auto block = std::make_shared<Block>(
      Block{.maker = std::this_thread::get_id(), .device = device, .base = base, .memory = memory});
  state.blocks.push_back(block);
  return AllocateIn(state, block, bytes);
}

void EndInBlock(State& state, const Allocation& old) {
  Block& block = *old.block;
  GiveAddressesBack(state, {old.base, old.bytes, old.reserved, /*is_part=*/true});
  if (state.config.reuse_addresses) AddGap(block.gaps, old.base - block.base, old.reserved);
  if (--block.parts > 0) return;
  std::erase(state.blocks, old.block);
  GiveAddressesBack(state, {block.base, kBlockBytes, kBlockBytes});
}

const Block* FindBlock(const State& state, const void* pointer) {
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  for (const std::shared_ptr<Block>& block : state.blocks) {
    if (address >= block->base && address - block->base < kBlockBytes) return block.get();
  }
  return nullptr;
}

std::atomic<int32_t>& OpensInBlock(const SharedMemory& memory, size_t offset) {
  auto* const counts = reinterpret_cast<std::atomic<int32_t>*>(memory.data() + kBlockBytes);
  return counts[offset / kPartUnit];
}

}  // namespace sluice::fake_cuda
