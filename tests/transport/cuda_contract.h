// Ranks whose buffers are in device memory: of a contract test, and of a job that exchanges them.
#ifndef SLUICE_TESTS_TRANSPORT_CUDA_CONTRACT_H_
#define SLUICE_TESTS_TRANSPORT_CUDA_CONTRACT_H_

#include <atomic>
#include <barrier>
#include <cstddef>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "sluice/accelerator.h"
#include "transport/contract_rank.h"

namespace sluice {

// Nothing but a stream, on which nobody but its transport, and who has it, puts anything.
std::unique_ptr<Device> MakeStreamOnlyDevice(int ordinal);

// Memory of the device `ordinal`, with transports that `maker` opens. Fills and reads buffers in
// the order of the device's stream, as packing and unpacking do.
std::unique_ptr<ContractMemory> CudaContractMemory(int ordinal,
                                                   std::shared_ptr<TransportMaker> maker);

using TransportMakerMaker = std::function<std::shared_ptr<TransportMaker>()>;

// Opens a transport on each rank, a thread, with a device of GPU `ordinals[rank]`; of -1: with the
// host's. One rank is on each of `nodes`.
std::vector<absl::Status> OpenOnGpus(const std::vector<int>& nodes,
                                     const std::vector<int>& ordinals,
                                     const TransportMakerMaker& maker);

// Ranks as threads that exchange buffers in device memory around a ring, as sessions do it. An
// error of one rank is raised as an alarm, upon which all withdraw and end their transports.
class CudaJob {
 public:
  using MemoryMaker = std::function<std::unique_ptr<ContractMemory>(int rank)>;

  CudaJob(int size, MemoryMaker memory)
      : size_(size), memory_(std::move(memory)), all_have_ended_(size) {}

  // What each rank got. A rank that hangs fails the test.
  std::vector<absl::Status> Run();

  static constexpr int kGroups = 6;
  static constexpr size_t kBytes = 50000;

 private:
  absl::Status ExchangeAndEnd(Fabric* fabric, ContractMemory* memory);
  absl::Status Exchange(int rank, ContractMemory* memory, Transport& transport);
  absl::Status PollUntilEnded(int rank, ContractMemory* memory, Transport& transport);

  const int size_;
  const MemoryMaker memory_;
  std::atomic<bool> alarm_{false};
  std::atomic<int> done_{0};
  std::barrier<> all_have_ended_;
};

// How many of the ranks failed.
int Failed(const std::vector<absl::Status>& outcomes);

}  // namespace sluice

#endif  // SLUICE_TESTS_TRANSPORT_CUDA_CONTRACT_H_
