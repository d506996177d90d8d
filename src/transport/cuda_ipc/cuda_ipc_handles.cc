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
#include "transport/deadline.h"

namespace sluice {
namespace {

// With this many mappings, those are closed whose memory its owner may have freed.
constexpr size_t kMappingsMax = 512;
constexpr absl::Duration kClosing = absl::Seconds(5);

uint64_t AddressOf(const void* data) { return reinterpret_cast<uintptr_t>(data); }

bool SameHandle(const cudaIpcMemHandle_t& a, const cudaIpcMemHandle_t& b) {
  return std::memcmp(&a, &b, sizeof(a)) == 0;
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
    return absl::FailedPreconditionError(absl::StrCat("cuMemGetAddressRange failed with CUresult ",
                                                      result,
                                                      ": no device memory of this process"));
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
  return absl::FailedPreconditionError(
      absl::StrCat(status.message(),
                   ": only memory of cudaMalloc can be opened by other processes, and not managed "
                   "memory, memory of pools or memory that was mapped by cuMemMap"));
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
  auto found = mappings_.find({peer, memory.base});
  if (found == mappings_.end() || !SameHandle(found->second.handle, memory.handle)) {
    CloseFreed(peer, memory);
    MakeRoom(memory.bytes);
    const absl::StatusOr<Mappings::iterator> made = Map(peer, memory);
    if (!made.ok()) return made.status();
    found = *made;
  }
  found->second.last_use = ++uses_;
  return static_cast<const std::byte*>(found->second.data) + memory.offset;
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
  open_bytes_ += memory.bytes;
  const Mapping mapping = {memory.handle, memory.bytes, data, 0};
  return mappings_.emplace(Key(peer, memory.base), mapping).first;
}

void CudaIpcImports::CloseMemory() {
  if (mappings_.empty()) return;
  const CurrentCudaDevice current(queue_.ordinal);
  if (!AwaitQueue()) return;
  for (auto mapping = mappings_.begin(); mapping != mappings_.end();) mapping = Close(mapping);
}

CudaIpcImports::Mappings::iterator CudaIpcImports::Close(Mappings::iterator mapping) {
  (void)CudaStatus(cudaIpcCloseMemHandle(mapping->second.data), "cudaIpcCloseMemHandle");
  open_bytes_ -= mapping->second.bytes;
  return mappings_.erase(mapping);
}

// The peer has freed what was where this is: it has seen that all use of it has ended.
void CudaIpcImports::CloseFreed(int peer, const CudaIpcMemory& memory) {
  auto next = mappings_.lower_bound({peer, memory.base});
  if (next != mappings_.begin()) {
    const auto before = std::prev(next);
    const auto& [key, mapping] = *before;
    if (key.first == peer && key.second + mapping.bytes > memory.base) next = before;
  }
  while (next != mappings_.end() && next->first.first == peer &&
         next->first.second < memory.base + memory.bytes) {
    next = Close(next);
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
    return absl::InternalError(absl::StrCat("rank ", peer, " names an event ", number));
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
