// Exporting and opening handles of device memory and events.
#include "transport/cuda_ipc/cuda_ipc_handles.h"

#include <algorithm>
#include <chrono>
#include <cstring>
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

constexpr absl::Duration kClosing = absl::Seconds(5);
// Small allocations share blocks. They begin at multiples of their size everywhere.
constexpr uint64_t kBlockBytes = uint64_t{2} << 20;

uint64_t AddressOf(const void* data) { return reinterpret_cast<uintptr_t>(data); }

// cuMemGetAddressRange
using FindRange = int (*)(unsigned long long* base, size_t* bytes, unsigned long long address);

absl::Status NoRange(int result, const char* what) {
  return absl::FailedPreconditionError(
      absl::StrCat("cuMemGetAddressRange failed with CUresult ", result, ": ", what));
}

// CUDA gives freed memory and later memory at its place different handles.
bool IsSame(const cudaIpcMemHandle_t& a, const cudaIpcMemHandle_t& b) {
  return std::memcmp(&a, &b, sizeof(a)) == 0;
}

}  // namespace

absl::StatusOr<CudaIpcExporter> CudaIpcExporter::Create(int64_t open_bytes_max) {
  SLUICE_ASSIGN_OR_RETURN(void* const find_range, FindCudaDriverFunction("cuMemGetAddressRange"));
  SLUICE_ASSIGN_OR_RETURN(void* const ask, FindCudaDriverFunction("cuPointerGetAttribute"));
  return CudaIpcExporter(reinterpret_cast<FindRange>(find_range), reinterpret_cast<Ask>(ask),
                         static_cast<uint64_t>(open_bytes_max));
}

bool CudaIpcExporter::CanExport(const std::byte* data) const {
  constexpr int kIsLegacyCudaIpcCapable = 10;  // CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE
  int is_capable = 0;                          // the driver writes a bool, which may be one byte
  const int result = ask_(&is_capable, kIsLegacyCudaIpcCapable, AddressOf(data));
  return result == 0 && is_capable != 0;
}

bool CudaIpcExporter::Offer(const std::byte* data) {
  const absl::StatusOr<CudaIpcMemory> memory = Export(data, 1);
  if (!memory.ok()) return false;
  const uint64_t end = memory->base + memory->bytes;
  auto other = offered_.upper_bound(memory->base);
  if (other != offered_.begin()) --other;
  for (; other != offered_.end() && other->first < end; ++other) {
    if (other->first + other->second.bytes <= memory->base) continue;
    if (!IsSame(other->second.handle, memory->handle)) return false;
  }
  if (MayLieInAnotherBlock(*memory)) return false;
  const auto known = offered_.find(memory->base);
  const uint64_t known_bytes = known == offered_.end() ? 0 : known->second.bytes;
  if (memory->bytes <= known_bytes) return true;
  if (!HasRoom()) return false;
  // In a block, what lies at one place one after the other can be ever longer.
  offered_[memory->base] = *memory;
  offered_bytes_ += memory->bytes - known_bytes;
  return true;
}

// An open part keeps all of its block open. Handles do not name their block. The block is the same
// one as long as an offered part is in use.
bool CudaIpcExporter::MayLieInAnotherBlock(const CudaIpcMemory& memory) const {
  const uint64_t begin = memory.base / kBlockBytes * kBlockBytes;
  const uint64_t end = begin + kBlockBytes;
  if (memory.base + memory.bytes > end) return false;
  const auto first = offered_.lower_bound(begin);
  const auto last = offered_.lower_bound(end);
  // The handle of a whole block outlives the memory by which it is asked.
  return first != last && std::all_of(first, last, [this, &memory](const auto& other) {
           return !IsSame(other.second.handle, memory.handle) && IsFreed(other.second);
         });
}

bool CudaIpcExporter::IsFreed(const CudaIpcMemory& memory) const {
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  const auto* const data = reinterpret_cast<const std::byte*>(static_cast<uintptr_t>(memory.base));
  const absl::StatusOr<CudaIpcMemory> now = Export(data, 1);
  return !now.ok() || !IsSame(now->handle, memory.handle);
}

// Freed memory stays open, so others never have less of it.
bool CudaIpcExporter::HasRoom() {
  if (is_full_ || offered_bytes_ <= room_bytes_) return !is_full_;
  const uint64_t freed = FreedBytes();
  is_full_ = freed > freed_bytes_max_;
  if (!is_full_) room_bytes_ = offered_bytes_ + freed_bytes_max_ - freed;
  return !is_full_;
}

uint64_t CudaIpcExporter::FreedBytes() const {
  uint64_t freed = 0;
  for (const auto& [base, memory] : offered_) {
    if (IsFreed(memory)) freed += memory.bytes;
  }
  return freed;
}

void CudaIpcExporter::ForgetOffers() {
  offered_.clear();
  offered_bytes_ = 0;
  room_bytes_ = freed_bytes_max_;
  is_full_ = false;
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
  SLUICE_ASSIGN_OR_RETURN(kept_, Export(memory.data(), memory.size()));
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
  CloseAll();
  for (const std::vector<cudaEvent_t>& events : events_) {
    for (const cudaEvent_t event : events) {
      if (event != nullptr) (void)CudaStatus(cudaEventDestroy(event), "cudaEventDestroy");
    }
  }
}

absl::StatusOr<const std::byte*> CudaIpcImports::Open(int peer, const CudaIpcMemory& memory) {
  auto found = mappings_.find({peer, memory.handle});
  if (found == mappings_.end()) {
    SLUICE_ASSIGN_OR_RETURN(found, Map(peer, memory));
  }
  const Mapping& mapping = found->second;
  return mapping.data + static_cast<int64_t>(memory.base + memory.offset - mapping.data_at_peer);
}

absl::StatusOr<CudaIpcImports::Mappings::iterator> CudaIpcImports::Map(
    int peer, const CudaIpcMemory& memory) {
  void* data = nullptr;
  const cudaError_t error =
      cudaIpcOpenMemHandle(&data, memory.handle, cudaIpcMemLazyEnablePeerAccess);
  if (error != cudaSuccess) {
    return CudaStatus(
        error, "cudaIpcOpenMemHandle",
        absl::StrCat(memory.bytes, " bytes of rank ", peer, ", beside ", mappings_.size(),
                     " allocations of other ranks that are open until the next "
                     "Compile or Drop"));
  }
  const absl::StatusOr<uint64_t> at_peer = AtPeer(data, memory);
  if (!at_peer.ok()) {
    (void)CudaStatus(cudaIpcCloseMemHandle(data), "cudaIpcCloseMemHandle");
    return at_peer.status();
  }
  const Mapping mapping = {static_cast<std::byte*>(data), *at_peer};
  return mappings_.emplace(Name{peer, memory.handle}, mapping).first;
}

// CUDA says that the whole block is opened in which an allocation lies. It does not say whether
// what one gets is where the allocation begins, or the block. So there is a question only where the
// allocation does not begin where blocks do, but what was opened does.
absl::StatusOr<uint64_t> CudaIpcImports::AtPeer(const void* opened, const CudaIpcMemory& memory) {
  const uint64_t in_block = memory.base % kBlockBytes;
  if (in_block == 0 || AddressOf(opened) % kBlockBytes != 0) return memory.base;
  SLUICE_ASSIGN_OR_RETURN(void* const find_range, FindCudaDriverFunction("cuMemGetAddressRange"));
  unsigned long long base = 0;
  size_t length = 0;
  const int result = reinterpret_cast<FindRange>(find_range)(&base, &length, AddressOf(opened));
  if (result != 0) return NoRange(result, "nothing else tells what of a block was opened");
  const bool is_block = base == AddressOf(opened) && in_block + memory.bytes <= length;
  return is_block ? memory.base - in_block : memory.base;
}

void CudaIpcImports::CloseMemory() {
  if (mappings_.empty()) return;
  const CurrentCudaDevice current(queue_.ordinal);
  if (AwaitQueue()) CloseAll();
}

void CudaIpcImports::CloseAll() {
  for (const auto& [name, mapping] : mappings_) {
    (void)CudaStatus(cudaIpcCloseMemHandle(mapping.data), "cudaIpcCloseMemHandle");
  }
  mappings_.clear();
}

bool CudaIpcImports::AwaitQueue() const {
  const Deadline deadline(kClosing);
  while (!CudaStatus(cudaStreamQuery(queue_.stream), "cudaStreamQuery").ok()) {
    if (deadline.Passed()) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return true;
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
