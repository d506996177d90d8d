// Communicators of the fake NCCL in this process.
#ifndef SLUICE_TESTS_FAKES_FAKE_NCCL_COMM_H_
#define SLUICE_TESTS_FAKES_FAKE_NCCL_COMM_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "fakes/fake_cuda_stream.h"
#include "fakes/fake_nccl_block.h"
#include "fakes/fake_shared_memory.h"
#include "nccl.h"

namespace sluice::fake_nccl {

struct Registration {
  uintptr_t handle;
  const std::byte* data;
  size_t bytes;
};

// The fields above `error` are set once; those below `kernels` are the calling thread's, which is
// one at a time, and its background job's.
struct Comm {
  uintptr_t handle = 0;
  int rank = 0;
  int ranks = 0;
  int device = 0;
  bool is_blocking = true;
  std::shared_ptr<fake_cuda::SharedMemory> memory;
  Block* block = nullptr;

  std::atomic<ncclResult_t> error = ncclSuccess;
  std::atomic<bool> is_pending = false;  // a background job is under way
  std::atomic<bool> is_aborted = false;

  uint64_t kernels = 0;
  fake_cuda::Position last_kernel = {};
  std::array<uint64_t, kMaxRanks> sends = {};  // messages so far, by peer
  std::array<uint64_t, kMaxRanks> receives = {};
  bool is_finalized = false;
  std::vector<Registration> registrations;

  RankSlot& slot(int of_rank) const { return block->slots[static_cast<size_t>(of_rank)]; }
};

// Misuse and nullptr if there is none.
std::shared_ptr<Comm> FindComm(ncclComm_t handle, const char* function);

// ncclSuccess if the communicator takes calls.
ncclResult_t CheckReady(const Comm& comm, const char* function);

// Does `job`, whose result becomes the communicator's error: at once if it blocks, and else in the
// background a little later, with ncclInProgress meanwhile.
ncclResult_t RunJob(const std::shared_ptr<Comm>& comm, std::function<ncclResult_t()> job);

// Lets the thread rest while it waits for others: longer each time. Begins with 0.
void Pause(int64_t& pauses);

}  // namespace sluice::fake_nccl

#endif  // SLUICE_TESTS_FAKES_FAKE_NCCL_COMM_H_
