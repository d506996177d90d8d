// The parts of the fake NCCL in this process: calls, communicators, kernels, memory and groups.
#ifndef SLUICE_TESTS_FAKES_FAKE_NCCL_COMM_H_
#define SLUICE_TESTS_FAKES_FAKE_NCCL_COMM_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fakes/fake_cuda_stream.h"
#include "fakes/fake_nccl_block.h"
#include "fakes/fake_shared_memory.h"
#include "nccl.h"

namespace sluice::fake_nccl {

// How every call of the fake NCCL begins and ends: counted, failed if asked for, and with words for
// what went wrong.

// Counts a call; ncclSuccess, or what it is to return.
ncclResult_t CountCall(const char* function);

// Words for ncclGetLastError; returns the result.
ncclResult_t Fail(ncclResult_t result, std::string words);

// The same, and misuse.
ncclResult_t Misuse(ncclResult_t result, const std::string& words);

// Counts a kernel of the rank that begins to run; ncclSuccess, or what it is to fail with.
ncclResult_t CountKernel(int rank);

int64_t TimeoutMs();
int64_t PlanParts();
bool HoldsAborts();
void RememberConfig(const ncclConfig_t& config);
void ForgetCalls();

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

// ---- Kernels of the fake NCCL: all sends and receives of one group of one communicator.

struct Transfer {
  bool is_send;
  int peer;
  std::byte* data;  // as the host sees it
  size_t bytes;
  size_t count;
  ncclDataType_t type;
  bool is_registered;
  uint64_t message = 0;  // the how-manieth to or from the peer
  size_t moved = 0;
};

struct Kernel {
  std::shared_ptr<Comm> comm;
  uint64_t number = 0;  // of its communicator, from 1
  std::vector<Transfer> transfers;
};

// Returns when all is sent and received, or the communicator has failed or was aborted.
void Run(Kernel& kernel);

// ---- Memory that the fake NCCL gives out, and what is registered with its communicators.

// Whether NCCL reaches all of it without buffers of its own.
bool IsRegistered(const Comm& comm, const std::byte* data, size_t bytes);

// How many registrations the communicator has.
size_t Registrations(const Comm& comm);

// Memory and counts, for FakeCudaCheckClean().
void ForgetMemory();

// ---- Groups of the fake NCCL: what a thread collects between a group's start and end.

// Whether this thread has started a group.
bool IsInGroup();

// Misuse if any thread has started a group and not ended it.
void CheckNoOpenGroup();

// ---- The ends of the fake NCCL's communicators.

// Waits, for some time at most, for what ends on threads of its own: it is not left.
void WaitForEnding();

}  // namespace sluice::fake_nccl

#endif  // SLUICE_TESTS_FAKES_FAKE_NCCL_COMM_H_
