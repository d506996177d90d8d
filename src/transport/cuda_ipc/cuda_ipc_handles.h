// Device memory and events between processes: what one gives others, and what it has opened.
#ifndef SLUICE_SRC_TRANSPORT_CUDA_IPC_CUDA_IPC_HANDLES_H_
#define SLUICE_SRC_TRANSPORT_CUDA_IPC_CUDA_IPC_HANDLES_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "device/cuda/cuda_queue.h"

namespace sluice {

// The number of events that a rank has for others. They are numbered from 0.
inline constexpr uint32_t kCudaIpcEventsMax = 1024;

// A place in memory: an allocation, and an offset in it.
struct CudaIpcMemory {
  // Names the allocation, or a block that it shares with others: drivers put small allocations
  // together. Freed memory and later memory at its place have different handles, unless both are of
  // one block.
  cudaIpcMemHandle_t handle = {};
  uint64_t base = 0;   // where its owner has the allocation
  uint64_t bytes = 0;  // of the allocation
  uint64_t offset = 0;
};

// Gives memory of this process to others. Its GPU is the calling thread's current one.
class CudaIpcExporter {
 public:
  // Others may keep so many bytes open that were freed, beside what is in use.
  // FailedPrecondition if the driver lacks a function that an exporter needs.
  static absl::StatusOr<CudaIpcExporter> Create(int64_t open_bytes_max);

  // Whether others can open the memory at `data`, as far as the driver tells.
  bool CanExport(const std::byte* data) const;

  // Whether others may open the memory at `data`, which they can. They may have it open from then
  // on. Not where they may have memory open that was freed, and lay there or in a block there: that
  // can be in the way. Nor once they may have too much open of what was freed.
  bool Offer(const std::byte* data);
  // Others have nothing open any more.
  void ForgetOffers();

  // [data, data + bytes) for others. FailedPrecondition if they cannot open such memory.
  absl::StatusOr<CudaIpcMemory> Export(const std::byte* data, size_t bytes) const;

  // Remembers memory of one allocation, which may not be freed before the next call. Export of a
  // part of this memory no longer asks the runtime.
  absl::Status Keep(absl::Span<std::byte> memory);

 private:
  // cuMemGetAddressRange and cuPointerGetAttribute: they return a CUresult.
  using FindRange = int (*)(unsigned long long* base, size_t* bytes, unsigned long long address);
  using Ask = int (*)(void* answer, int attribute, unsigned long long address);
  CudaIpcExporter(FindRange find_range, Ask ask, uint64_t freed_bytes_max)
      : find_range_(find_range), ask_(ask), freed_bytes_max_(freed_bytes_max) {
    ForgetOffers();
  }

  bool MayLieInAnotherBlock(const CudaIpcMemory& memory) const;
  bool IsFreed(const CudaIpcMemory& memory) const;
  bool HasRoom();
  uint64_t FreedBytes() const;

  FindRange find_range_;
  Ask ask_;
  uint64_t freed_bytes_max_;
  std::map<uint64_t, CudaIpcMemory> offered_;  // what others may have open, by its base
  uint64_t offered_bytes_;
  // Up to so many offered bytes, others cannot have too much freed memory open: the limit, and the
  // bytes that were in use at the last count.
  uint64_t room_bytes_;
  bool is_full_;
  CudaIpcMemory kept_;
  uint64_t kept_begin_ = 0;
  uint64_t kept_end_ = 0;
};

// Memory and events of others that this process has opened: each handle and each event once. The
// queue's GPU is current in Open. Memory stays open until CloseMemory, or the end: closing may wait
// for all that the device does, so no run may do that.
class CudaIpcImports {
 public:
  CudaIpcImports(const CudaQueue& queue, int peers)
      : queue_(queue), events_(static_cast<size_t>(peers)) {}
  // Closes everything, once the queue has got past it: waits for that a few seconds at most, and
  // otherwise leaves all open.
  ~CudaIpcImports();
  CudaIpcImports(const CudaIpcImports&) = delete;
  CudaIpcImports& operator=(const CudaIpcImports&) = delete;

  // The memory's address in this process, for use in the queue.
  absl::StatusOr<const std::byte*> Open(int peer, const CudaIpcMemory& memory);

  // Closes all memory, once the queue has got past it: waits for that a few seconds at most, and
  // otherwise leaves all open.
  void CloseMemory();

  // The peer's event `number`, which has this handle for ever.
  absl::StatusOr<cudaEvent_t> Open(int peer, uint32_t number, const cudaIpcEventHandle_t& handle);

 private:
  struct Name {
    int peer;
    cudaIpcMemHandle_t handle;
    bool operator<(const Name& other) const;
  };
  struct Mapping {
    std::byte* data;
    uint64_t data_at_peer;  // where the peer has what is at `data`
  };
  using Mappings = std::map<Name, Mapping>;

  absl::StatusOr<Mappings::iterator> Map(int peer, const CudaIpcMemory& memory);
  static absl::StatusOr<uint64_t> AtPeer(const void* opened, const CudaIpcMemory& memory);
  void CloseAll();
  bool AwaitQueue() const;

  const CudaQueue queue_;
  Mappings mappings_;
  std::vector<std::vector<cudaEvent_t>> events_;  // by peer and number; null: not open
};

}  // namespace sluice

#endif  // SLUICE_SRC_TRANSPORT_CUDA_IPC_CUDA_IPC_HANDLES_H_
