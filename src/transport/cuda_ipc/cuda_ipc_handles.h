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

// Where memory lies: in which allocation, and where in it.
struct CudaIpcMemory {
  // Of the allocation, or of a block that it shares with others: drivers put small allocations
  // together. What was freed and what lies there later never have the same, unless both are of one
  // block.
  cudaIpcMemHandle_t handle = {};
  uint64_t base = 0;   // where its owner has the allocation
  uint64_t bytes = 0;  // of the allocation
  uint64_t offset = 0;
};

// Gives memory of this process to others. Its GPU is the calling thread's current one.
class CudaIpcExporter {
 public:
  // FailedPrecondition if the driver lacks a function that an exporter needs.
  static absl::StatusOr<CudaIpcExporter> Create();

  // Whether others can open the memory at `data`, as far as the driver tells.
  bool CanExport(const std::byte* data) const;

  // [data, data + bytes) for others. FailedPrecondition if they cannot open such memory.
  absl::StatusOr<CudaIpcMemory> Export(const std::byte* data, size_t bytes) const;

  // Remembers memory of one allocation, which may not be freed before the next call. Export of a
  // part of this memory no longer asks the runtime.
  absl::Status Keep(absl::Span<std::byte> memory);

 private:
  // cuMemGetAddressRange and cuPointerGetAttribute: they return a CUresult.
  using FindRange = int (*)(unsigned long long* base, size_t* bytes, unsigned long long address);
  using Ask = int (*)(void* answer, int attribute, unsigned long long address);
  CudaIpcExporter(FindRange find_range, Ask ask) : find_range_(find_range), ask_(ask) {}

  FindRange find_range_;
  Ask ask_;
  CudaIpcMemory kept_;
  uint64_t kept_begin_ = 0;
  uint64_t kept_end_ = 0;
};

// What this process has opened of others: each handle of memory and each event once. The queue's
// GPU is current in Open.
class CudaIpcImports {
 public:
  // Beyond `open_bytes`, memory is closed that the queue has got past, what was used longest ago
  // first.
  CudaIpcImports(const CudaQueue& queue, int peers, int64_t open_bytes)
      : queue_(queue),
        open_bytes_max_(static_cast<uint64_t>(open_bytes)),
        events_(static_cast<size_t>(peers)) {}
  // Closes everything, once the queue has got past it: waits for that a few seconds at most, and
  // otherwise leaves all open.
  ~CudaIpcImports();
  CudaIpcImports(const CudaIpcImports&) = delete;
  CudaIpcImports& operator=(const CudaIpcImports&) = delete;

  // Where this process has the memory; for use in the queue, before the next call.
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
    // What the peer has named of it by now, where the peer has it: one allocation, or from the
    // first to the last of a block. No two of one peer overlap there.
    uint64_t begin;
    uint64_t end;
    uint64_t last_use;
  };
  using Mappings = std::map<Name, Mapping>;

  absl::StatusOr<Mappings::iterator> Map(int peer, const CudaIpcMemory& memory);
  static absl::StatusOr<uint64_t> AtPeer(const void* opened, const CudaIpcMemory& memory);
  void Cover(Mapping* mapping, const CudaIpcMemory& memory);
  Mappings::iterator Close(Mappings::iterator mapping);
  void CloseFreed(int peer, const CudaIpcMemory& memory);
  void MakeRoom(uint64_t bytes);
  bool QueueIsIdle() const;
  bool AwaitQueue() const;
  uint64_t PassedUses();

  const CudaQueue queue_;
  const uint64_t open_bytes_max_;
  Mappings mappings_;
  uint64_t open_bytes_ = 0;
  uint64_t uses_ = 0;
  // The queue has got past `passed_uses_` uses, and past `marked_uses_` when it is past the mark.
  uint64_t passed_uses_ = 0;
  uint64_t marked_uses_ = 0;
  cudaEvent_t mark_ = nullptr;
  std::vector<std::vector<cudaEvent_t>> events_;  // by peer and number; null: not open
};

}  // namespace sluice

#endif  // SLUICE_SRC_TRANSPORT_CUDA_IPC_CUDA_IPC_HANDLES_H_
