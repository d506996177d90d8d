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
#include "fakes/fake_nccl_call.h"
#include "fakes/fake_shared_memory.h"
#include "nccl.h"

namespace sluice::fake_nccl {

struct Registration {
  uintptr_t handle;
  const std::byte* data;
  size_t bytes;
  bool is_real;  // of memory that NCCL registers; otherwise the call has changed nothing
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
  std::atomic<bool> is_ending = false;  // in ncclCommDestroy or ncclCommAbort

  uint64_t kernels = 0;
  fake_cuda::Position last_kernel = {};
  std::array<uint64_t, kMaxRanks> sends = {};  // messages so far, by peer
  std::array<uint64_t, kMaxRanks> receives = {};
  bool is_finalized = false;
  std::vector<Registration> registrations;  // fake_nccl_memory.cc locks them

  RankSlot& slot(int of_rank) const { return block->slots[static_cast<size_t>(of_rank)]; }
};

// Takes it out of the table; its rank is in that state from now on.
void Leave(const Comm& comm, RankState state);

// Misuse and nullptr if there is none.
std::shared_ptr<Comm> FindComm(ncclComm_t handle, const char* function);

// Those that were made and not ended.
std::vector<std::shared_ptr<Comm>> LiveComms();

// ncclSuccess if the communicator takes calls.
ncclResult_t CheckReady(const Comm& comm, const char* function);

// Does `job`, whose result becomes the communicator's error: at once if it blocks, and else in the
// background a little later, with ncclInProgress meanwhile.
ncclResult_t RunJob(const std::shared_ptr<Comm>& comm, std::function<ncclResult_t()> job);

// Lets the thread rest while it waits for others: longer each time. Begins with 0.
void Pause(int64_t& pauses);

// What a call that is to fail does first: nothing, or all the same what it is for.
enum class IfFailed { kNothing, kDoIt };

// Runs `body(comm)` if there is such a communicator.
template <class Body>
ncclResult_t Call(const char* function, IfFailed if_failed, ncclComm_t handle, const Body& body) {
  const ncclResult_t failure = CountCall(function);
  if (failure != ncclSuccess && if_failed == IfFailed::kNothing) return failure;
  const std::shared_ptr<Comm> comm = FindComm(handle, function);
  const ncclResult_t result = comm == nullptr ? ncclInvalidArgument : body(comm);
  return failure != ncclSuccess ? failure : result;
}

}  // namespace sluice::fake_nccl

#endif  // SLUICE_TESTS_FAKES_FAKE_NCCL_COMM_H_
