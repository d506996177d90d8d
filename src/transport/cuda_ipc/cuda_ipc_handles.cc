// Exporting and opening handles of device memory and events.
#include "transport/cuda_ipc_handles.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "device/cuda_error.h"
#include "transport/deadline.h"

namespace sluice {
namespace {

// Beyond so many, mappings are closed that may be of memory that its owner has freed.
constexpr size_t kMappingsMax = 512;
constexpr absl::Duration kClosing = absl::Seconds(5);
// No transport has room for so many operations.
constexpr uint32_t kEventsMax = 1 << 24;

uint64_t AddressOf(const void* data) { return reinterpret_cast<uintptr_t>(data); }

bool SameHandle(const cudaIpcMemHandle_t& a, const cudaIpcMemHandle_t& b) {
  return std::memcmp(&a, &b, sizeof(a)) == 0;
}

}  // namespace

absl::StatusOr<CudaIpcExporter> CudaIpcExporter::Create() {
  constexpr unsigned kVersion = 12000;
  constexpr unsigned long long kDefault = 0;
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
  const cudaError_t error = cudaGetDriverEntryPointByVersion("cuMemGetAddressRange", &function,
                                                             kVersion, kDefault, &found);
  if (error != cudaSuccess) {
    return CudaStatus(error, "cudaGetDriverEntryPointByVersion", "cuMemGetAddressRange");
  }
  if (found != cudaDriverEntryPointSuccess || function == nullptr) {
    return absl::FailedPreconditionError("the CUDA driver has no cuMemGetAddressRange");
  }
  return CudaIpcExporter(reinterpret_cast<FindRange>(function));
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
  const Deadline deadline(kClosing);
  while (!QueueIsIdle()) {
    if (deadline.Passed()) return;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  while (!mappings_.empty()) Close(mappings_.begin());
  for (const std::vector<cudaEvent_t>& events : events_) {
    for (const cudaEvent_t event : events) {
      if (event != nullptr) (void)CudaStatus(cudaEventDestroy(event), "cudaEventDestroy");
    }
  }
}

absl::StatusOr<const std::byte*> CudaIpcImports::Open(int peer, const CudaIpcMemory& memory) {
  const Key key = {peer, memory.base};
  auto found = mappings_.find(key);
  // The peer has freed what was there: it has seen that all use of it has ended.
  if (found != mappings_.end() && !SameHandle(found->second.handle, memory.handle)) {
    Close(found);
    found = mappings_.end();
  }
  if (found == mappings_.end()) {
    MakeRoom();
    void* data = nullptr;
    const cudaError_t error =
        cudaIpcOpenMemHandle(&data, memory.handle, cudaIpcMemLazyEnablePeerAccess);
    if (error != cudaSuccess) {
      return CudaStatus(error, "cudaIpcOpenMemHandle", absl::StrCat("memory of rank ", peer));
    }
    found = mappings_.emplace(key, Mapping{memory.handle, data, 0}).first;
  }
  found->second.last_use = ++uses_;
  return static_cast<const std::byte*>(found->second.data) + memory.offset;
}

bool CudaIpcImports::QueueIsIdle() const {
  return CudaStatus(cudaStreamQuery(queue_.stream), "cudaStreamQuery").ok();
}

void CudaIpcImports::Close(Mappings::iterator mapping) {
  (void)CudaStatus(cudaIpcCloseMemHandle(mapping->second.data), "cudaIpcCloseMemHandle");
  mappings_.erase(mapping);
}

void CudaIpcImports::MakeRoom() {
  if (mappings_.size() < kMappingsMax) return;
  if (!QueueIsIdle()) return;
  while (mappings_.size() >= kMappingsMax) {
    Close(std::min_element(mappings_.begin(), mappings_.end(), [](const auto& a, const auto& b) {
      return a.second.last_use < b.second.last_use;
    }));
  }
}

absl::StatusOr<cudaEvent_t> CudaIpcImports::Open(int peer, uint32_t number,
                                                 const cudaIpcEventHandle_t& handle) {
  std::vector<cudaEvent_t>& events = events_[static_cast<size_t>(peer)];
  if (number >= kEventsMax) {
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
