// Exporting and opening handles of device memory and events.
#include "transport/cuda_ipc/cuda_ipc_handles.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <iterator>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "device/cuda/cuda_current.h"
#include "device/cuda/cuda_driver.h"
#include "device/cuda/cuda_error.h"
#include "tensor/error_text.h"
#include "transport/deadline.h"

namespace sluice {
namespace {

// With this many mappings, those are closed whose memory its owner may have freed.
constexpr size_t kMappingsMax = 512;
constexpr absl::Duration kClosing = absl::Seconds(5);

uint64_t AddressOf(const void* data) { return reinterpret_cast<uintptr_t>(data); }

// cuMemGetAddressRange
using FindRange = int (*)(unsigned long long* base, size_t* bytes, unsigned long long address);

absl::Status NoRange(int result, const char* what) {
  return absl::FailedPreconditionError(
      absl::StrCat("cuMemGetAddressRange failed with CUresult ", result, ": ", what));
}

}  // namespace

absl::StatusOr<CudaIpcExporter> CudaIpcExporter::Create() {
  const absl::StatusOr<void*> find_range = FindCudaDriverFunction("cuMemGetAddressRange");
  if (!find_range.ok()) return find_range.status();
  const absl::StatusOr<void*> ask = FindCudaDriverFunction("cuPointerGetAttribute");
  if (!ask.ok()) return ask.status();
  return CudaIpcExporter(reinterpret_cast<FindRange>(*find_range), reinterpret_cast<Ask>(*ask));
}

bool CudaIpcExporter::CanExport(const std::byte* data) const {
  constexpr int kIsLegacyCudaIpcCapable = 10;  // CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE
  int is_capable = 0;                          // the driver writes a bool, which may be one byte
  const int result = ask_(&is_capable, kIsLegacyCudaIpcCapable, AddressOf(data));
  return result == 0 && is_capable != 0;
}

absl::StatusOr<CudaIpcMemory> CudaIpcExporter::Export(const std::byte* data, size_t bytes) const {
  const uint64_t begin = AddressOf(data);
  if (begin >= kept_begin_ && begin + bytes <= kept_end_) {
    CudaIpcMemory memory = kept_;
    memory.offset = begin - kept_.base;
    return memory;
  }
  unsigned long long base = 0;
  size_t length = 0;
  if (const int result = find_range_(&base, &length, begin); result != 0) {
    return NoRange(result, "no device memory of this process");
  }
  if (begin + bytes > base + length) {
    return absl::FailedPreconditionError(
        absl::StrCat(bytes, " bytes go beyond their allocation of ", length, " bytes"));
  }
  CudaIpcMemory memory;
  memory.base = base;
  memory.bytes = length;
  memory.offset = begin - base;
  const cudaError_t error =
      cudaIpcGetMemHandle(&memory.handle, const_cast<std::byte*>(data) - memory.offset);
  if (error == cudaSuccess) return memory;
  const absl::Status status = CudaStatus(error, "cudaIpcGetMemHandle");
  return MakeError(absl::StatusCode::kFailedPrecondition, status,
                   ": only memory of cudaMalloc can be opened by other processes, and not managed "
                   "memory, memory of pools or memory that was mapped by cuMemMap");
}

absl::Status CudaIpcExporter::Keep(absl::Span<std::byte> memory) {
  kept_begin_ = kept_end_ = 0;
  if (memory.empty()) return absl::OkStatus();
  const absl::StatusOr<CudaIpcMemory> exported = Export(memory.data(), memory.size());
  if (!exported.ok()) return exported.status();
  kept_ = *exported;
  kept_begin_ = AddressOf(memory.data());
  kept_end_ = kept_begin_ + memory.size();
  return absl::OkStatus();
}

bool CudaIpcImports::Name::operator<(const Name& other) const {
  if (peer != other.peer) return peer < other.peer;
  return std::memcmp(&handle, &other.handle, sizeof(handle)) < 0;
}

CudaIpcImports::~CudaIpcImports() {
  const CurrentCudaDevice current(queue_.ordinal);
  if (!AwaitQueue()) return;
  for (auto mapping = mappings_.begin(); mapping != mappings_.end();) mapping = Close(mapping);
  for (const std::vector<cudaEvent_t>& events : events_) {
    for (const cudaEvent_t event : events) {
      if (event != nullptr) (void)CudaStatus(cudaEventDestroy(event), "cudaEventDestroy");
    }
  }
  if (mark_ != nullptr) (void)CudaStatus(cudaEventDestroy(mark_), "cudaEventDestroy");
}

absl::StatusOr<const std::byte*> CudaIpcImports::Open(int peer, const CudaIpcMemory& memory) {
  auto found = mappings_.find({peer, memory.handle});
  if (found == mappings_.end()) {
    CloseFreed(peer, memory);
    MakeRoom(memory.bytes);
    const absl::StatusOr<Mappings::iterator> made = Map(peer, memory);
    if (!made.ok()) return made.status();
    found = *made;
  }
  Mapping& mapping = found->second;
  Cover(&mapping, memory);
  mapping.last_use = ++uses_;
  return mapping.data + static_cast<int64_t>(memory.base + memory.offset - mapping.data_at_peer);
}

absl::StatusOr<CudaIpcImports::Mappings::iterator> CudaIpcImports::Map(
    int peer, const CudaIpcMemory& memory) {
  void* data = nullptr;
  const auto open = [&memory, &data] {
    return cudaIpcOpenMemHandle(&data, memory.handle, cudaIpcMemLazyEnablePeerAccess);
  };
  cudaError_t error = open();
  // What is open may be in the way: memory that its owner has freed keeps its place until then.
  if (error == cudaErrorAlreadyMapped || error == cudaErrorMemoryAllocation ||
      error == cudaErrorMapBufferObjectFailed) {
    (void)CudaStatus(error, "cudaIpcOpenMemHandle");
    CloseMemory();
    error = open();
  }
  if (error != cudaSuccess) {
    return CudaStatus(error, "cudaIpcOpenMemHandle", absl::StrCat("memory of rank ", peer));
  }
  const absl::StatusOr<uint64_t> at_peer = AtPeer(data, memory);
  if (!at_peer.ok()) {
    (void)CudaStatus(cudaIpcCloseMemHandle(data), "cudaIpcCloseMemHandle");
    return at_peer.status();
  }
  const Mapping mapping = {static_cast<std::byte*>(data), *at_peer, memory.base, memory.base, 0};
  return mappings_.emplace(Name{peer, memory.handle}, mapping).first;
}

// CUDA says that the whole block is opened in which an allocation lies. It does not say whether
// what one gets is where the allocation begins, or the block. Blocks begin at multiples of their
// size everywhere. So there is a question only where the allocation does not begin there, but what
// was opened does.
absl::StatusOr<uint64_t> CudaIpcImports::AtPeer(const void* opened, const CudaIpcMemory& memory) {
  constexpr uint64_t kBlockBytes = uint64_t{2} << 20;
  const uint64_t in_block = memory.base % kBlockBytes;
  if (in_block == 0 || AddressOf(opened) % kBlockBytes != 0) return memory.base;
  const absl::StatusOr<void*> find_range = FindCudaDriverFunction("cuMemGetAddressRange");
  if (!find_range.ok()) return find_range.status();
  unsigned long long base = 0;
  size_t length = 0;
  const int result = reinterpret_cast<FindRange>(*find_range)(&base, &length, AddressOf(opened));
  if (result != 0) return NoRange(result, "nothing else tells what of a block was opened");
  const bool is_block = base == AddressOf(opened) && in_block + memory.bytes <= length;
  return is_block ? memory.base - in_block : memory.base;
}

// Allocations of one place and one handle come one after the other, so only the last one counts.
void CudaIpcImports::Cover(Mapping* mapping, const CudaIpcMemory& memory) {
  open_bytes_ -= mapping->end - mapping->begin;
  const uint64_t end = memory.base + memory.bytes;
  const bool is_alone = mapping->begin == memory.base && mapping->data_at_peer == memory.base;
  mapping->end = is_alone ? end : std::max(mapping->end, end);
  mapping->begin = std::min(mapping->begin, memory.base);
  open_bytes_ += mapping->end - mapping->begin;
}

void CudaIpcImports::CloseMemory() {
  if (mappings_.empty()) return;
  const CurrentCudaDevice current(queue_.ordinal);
  if (!AwaitQueue()) return;
  for (auto mapping = mappings_.begin(); mapping != mappings_.end();) mapping = Close(mapping);
}

CudaIpcImports::Mappings::iterator CudaIpcImports::Close(Mappings::iterator mapping) {
  (void)CudaStatus(cudaIpcCloseMemHandle(mapping->second.data), "cudaIpcCloseMemHandle");
  open_bytes_ -= mapping->second.end - mapping->second.begin;
  return mappings_.erase(mapping);
}

// The peer has freed what was where this is: it has seen that all use of it has ended.
void CudaIpcImports::CloseFreed(int peer, const CudaIpcMemory& memory) {
  auto next = mappings_.lower_bound({peer, {}});
  while (next != mappings_.end() && next->first.peer == peer) {
    const Mapping& mapping = next->second;
    const bool overlaps = mapping.begin < memory.base + memory.bytes && memory.base < mapping.end;
    next = overlaps ? Close(next) : std::next(next);
  }
}

// Room for one more. What the queue has yet to use stays.
void CudaIpcImports::MakeRoom(uint64_t bytes) {
  const auto is_full = [this, bytes] {
    return mappings_.size() >= kMappingsMax || open_bytes_ + bytes > open_bytes_max_;
  };
  if (mappings_.empty() || !is_full()) return;
  const uint64_t passed = PassedUses();
  while (!mappings_.empty() && is_full()) {
    const auto oldest = std::min_element(
        mappings_.begin(), mappings_.end(),
        [](const auto& a, const auto& b) { return a.second.last_use < b.second.last_use; });
    if (oldest->second.last_use > passed) return;
    Close(oldest);
  }
}

bool CudaIpcImports::QueueIsIdle() const {
  return CudaStatus(cudaStreamQuery(queue_.stream), "cudaStreamQuery").ok();
}

bool CudaIpcImports::AwaitQueue() const {
  const Deadline deadline(kClosing);
  while (!QueueIsIdle()) {
    if (deadline.Passed()) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return true;
}

// All uses up to this one are over. Where the queue is never idle, a mark in it tells.
uint64_t CudaIpcImports::PassedUses() {
  if (QueueIsIdle()) return passed_uses_ = uses_;
  if (mark_ == nullptr) {
    constexpr unsigned kFlags = cudaEventDisableTiming;
    if (!CudaStatus(cudaEventCreateWithFlags(&mark_, kFlags), "cudaEventCreateWithFlags").ok()) {
      mark_ = nullptr;
      return passed_uses_;
    }
  } else if (CudaStatus(cudaEventQuery(mark_), "cudaEventQuery").ok()) {
    passed_uses_ = std::max(passed_uses_, marked_uses_);
  } else {
    return passed_uses_;
  }
  if (CudaStatus(cudaEventRecord(mark_, queue_.stream), "cudaEventRecord").ok()) {
    marked_uses_ = uses_;
  }
  return passed_uses_;
}

absl::StatusOr<cudaEvent_t> CudaIpcImports::Open(int peer, uint32_t number,
                                                 const cudaIpcEventHandle_t& handle) {
  std::vector<cudaEvent_t>& events = events_[static_cast<size_t>(peer)];
  if (number >= kCudaIpcEventsMax) {
    return MakeError(absl::StatusCode::kInternal, RankInWords(peer), " names an event ", number);
  }
  if (number >= events.size()) events.resize(number + 1, nullptr);
  if (events[number] == nullptr) {
    const cudaError_t error = cudaIpcOpenEventHandle(&events[number], handle);
    if (error != cudaSuccess) {
      return CudaStatus(error, "cudaIpcOpenEventHandle", absl::StrCat("an event of rank ", peer));
    }
  }
  return events[number];
}

}  // namespace sluice
