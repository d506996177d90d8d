// Ranks as threads that exchange buffers in device memory around a ring, as sessions do it. An
// error of one rank is raised as an alarm, upon which all withdraw and end their transports.
#ifndef SLUICE_TESTS_TRANSPORT_CUDA_JOB_H_
#define SLUICE_TESTS_TRANSPORT_CUDA_JOB_H_

#include <atomic>
#include <barrier>
#include <cstddef>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "transport/contract_rank.h"

namespace sluice {

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

#endif  // SLUICE_TESTS_TRANSPORT_CUDA_JOB_H_
