// A ring of ranks with an alarm.
#include "transport/cuda_job.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "transport/thread_ranks.h"

namespace sluice {
namespace {

absl::Status PollOnce(Transport& transport) {
  std::vector<TransportEvent> events(4);
  const absl::StatusOr<int> count = transport.Poll(absl::MakeSpan(events));
  if (!count.ok()) return count.status();
  absl::Status status;
  for (int i = 0; i < *count; ++i) status.Update(events[static_cast<size_t>(i)].status);
  return status;
}

}  // namespace

std::vector<absl::Status> CudaJob::Run() {
  std::vector<absl::Status> outcomes(static_cast<size_t>(size_));
  OnThreads(std::vector<int>(static_cast<size_t>(size_), 0), [&](std::unique_ptr<Fabric> fabric) {
    const auto rank = static_cast<size_t>(fabric->rank());
    const std::unique_ptr<ContractMemory> memory = memory_(fabric->rank());
    outcomes[rank] = ExchangeAndEnd(fabric.get(), memory.get());
    // Nobody's memory goes while another rank may have it open.
    all_have_ended_.arrive_and_wait();
  });
  return outcomes;
}

absl::Status CudaJob::ExchangeAndEnd(Fabric* fabric, ContractMemory* memory) {
  auto transport = memory->OpenTransport(fabric);
  if (!transport.ok()) return transport.status();
  absl::Status status = Exchange(fabric->rank(), memory, **transport);
  if (!status.ok()) alarm_ = true;
  ++done_;
  // Nobody leaves while others may still have to be ended.
  while (done_ < size_ && !alarm_) std::this_thread::yield();
  if (alarm_) (*transport)->Withdraw();
  return status.ok() && alarm_ ? absl::CancelledError("alarm") : status;
}

absl::Status CudaJob::Exchange(int rank, ContractMemory* memory, Transport& transport) {
  absl::Status status = transport.Reserve(2 * kGroups);
  std::byte* const data = memory->Allocate(2 * kBytes);
  status.Update(transport.UseStaging({data, 2 * kBytes}));
  const int next = (rank + 1) % size_, previous = (rank + size_ - 1) % size_;
  for (int group = 0; status.ok() && group < kGroups; ++group) {
    status =
        transport.Start({{TransportOp::Kind::kSend, next, 0, data, kBytes, 1},
                         {TransportOp::Kind::kReceive, previous, 0, data + kBytes, kBytes, 2}});
  }
  return status.ok() ? PollUntilEnded(rank, memory, transport) : status;
}

absl::Status CudaJob::PollUntilEnded(int rank, ContractMemory* memory, Transport& transport) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(120);
  absl::Status status;
  // What has been launched may yet fail.
  while (status.ok() && !alarm_ && (transport.outstanding() > 0 || memory->IsBusy())) {
    status = PollOnce(transport);
    if (std::chrono::steady_clock::now() > deadline) {
      ADD_FAILURE() << "rank " << rank << " hangs";
      return absl::InternalError("hangs");
    }
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  return status;
}

int Failed(const std::vector<absl::Status>& outcomes) {
  return static_cast<int>(std::count_if(outcomes.begin(), outcomes.end(),
                                        [](const absl::Status& status) { return !status.ok(); }));
}

}  // namespace sluice
