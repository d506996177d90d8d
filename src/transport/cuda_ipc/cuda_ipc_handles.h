// Device memory and events between processes: what one gives others, and what it has opened.
#ifndef SLUICE_SRC_TRANSPORT_CUDA_IPC_HANDLES_H_
#define SLUICE_SRC_TRANSPORT_CUDA_IPC_HANDLES_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "transport/cuda_queue.h"

namespace sluice {

// Where memory lies: in which allocation, and where in it.
struct CudaIpcMemory {
  cudaIpcMemHandle_t handle = {};  // no two allocations have the same, at one address or not
  uint64_t base = 0;               // where its owner has the allocation
  uint64_t offset = 0;
};

// Gives memory of this process to others.
class CudaIpcExporter {
 public:
  // FailedPrecondition if the driver lacks what this takes.
  static absl::StatusOr<CudaIpcExporter> Create();

  // [data, data + bytes) for others. FailedPrecondition if they cannot open such memory.
  absl::StatusOr<CudaIpcMemory> Export(const std::byte* data, size_t bytes) const;

  // Memory of one allocation that is not freed before the next call: Export of parts of it asks the
  // runtime no more.
  absl::Status Keep(absl::Span<std::byte> memory);

 private:
  // cuMemGetAddressRange: returns a CUresult.
  using FindRange = int (*)(unsigned long long* base, size_t* bytes, unsigned long long address);
  explicit CudaIpcExporter(FindRange find_range) : find_range_(find_range) {}

  FindRange find_range_;
  CudaIpcMemory kept_;
  uint64_t kept_begin_ = 0;
  uint64_t kept_end_ = 0;
};

// What this process has opened of others: each allocation and each event once.
class CudaIpcImports {
 public:
  CudaIpcImports(const CudaQueue& queue, int peers)
      : queue_(queue), events_(static_cast<size_t>(peers)) {}
  // Closes everything, once the queue has got past it: waits for that a few seconds at most, and
  // otherwise leaves all open.
  ~CudaIpcImports();
  CudaIpcImports(const CudaIpcImports&) = delete;
  CudaIpcImports& operator=(const CudaIpcImports&) = delete;

  // Where this process has the memory; for use in the queue, before the next call.
  absl::StatusOr<const std::byte*> Open(int peer, const CudaIpcMemory& memory);

  // The peer's event `number`, which has this handle for ever.
  absl::StatusOr<cudaEvent_t> Open(int peer, uint32_t number, const cudaIpcEventHandle_t& handle);

 private:
  struct Mapping {
    cudaIpcMemHandle_t handle;
    void* data;
    uint64_t last_use;
  };
  // By peer, and by where the peer has it.
  using Key = std::pair<int, uint64_t>;
  using Mappings = std::map<Key, Mapping>;

  void Close(Mappings::iterator mapping);
  bool QueueIsIdle() const;
  // Closes the mappings that were used longest ago, if there are many and the queue has got past
  // all of them.
  void MakeRoom();

  const CudaQueue queue_;
  Mappings mappings_;
  uint64_t uses_ = 0;
  std::vector<std::vector<cudaEvent_t>> events_;  // by peer and number; null: not open
};

}  // namespace sluice

#endif  // SLUICE_SRC_TRANSPORT_CUDA_IPC_HANDLES_H_
