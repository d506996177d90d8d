// What tests do with the fake NCCL beside NCCL's own calls: make calls and kernels fail, and count.
// Misuse is reported by FakeCudaMisuse(), what is left by FakeCudaCheckClean().
//
// The fake is stricter than NCCL where mistakes hide. A send is done when its receive has taken it,
// sizes and types are compared, and a kernel that waits too long says what everybody waits for.
// Destroying a communicator waits for all ranks that it has exchanged with, as NCCL does where
// they have connected to its proxy. Ranks are threads, or processes on one node.
//
// Environment: FAKE_NCCL_TIMEOUT_MS, how long a kernel may wait without any progress (120000).
#ifndef SLUICE_TESTS_FAKES_FAKE_NCCL_H_
#define SLUICE_TESTS_FAKES_FAKE_NCCL_H_

#include <cstdint>
#include <string_view>

#include "nccl.h"

namespace sluice {

// For this process, instead of the environment's.
void FakeNcclSetTimeout(int64_t milliseconds);

// The nth call from now on (1: the next), or the nth of one function, returns the result and does
// nothing. But a call that gives something back does give it back, and a group ends all the same.
// With `device`, only calls of threads whose device it is count.
void FakeNcclFailAt(int nth_call, ncclResult_t result);
void FakeNcclFailAt(std::string_view function, int nth_call, ncclResult_t result, int device = -1);

// The nth kernel of a rank to run from now on gets stuck half way through its bytes. The result is
// its communicator's asynchronous error. The kernel goes on waiting until the communicator is
// aborted.
void FakeNcclFailKernel(int rank, int nth_kernel, ncclResult_t result);

// How many parts of operations fit one kernel: 253 if 0, as in NCCL 2.28. A larger group is misuse.
void FakeNcclSetPlanParts(int64_t parts);

// What ncclGetVersion says; the header's if 0.
void FakeNcclSetVersion(int version);

// While it holds them, ncclCommAbort ends what is under way, but does not come back: as NCCL where
// a thread of its own waits for other ranks.
void FakeNcclHoldAborts(bool hold);

// From now on nothing is made to fail.
void FakeNcclFailNoMore();

// How many of the failures above have come to pass since the last FakeCudaCheckClean().
int FakeNcclFailures();

// Since the last FakeCudaCheckClean().
int64_t FakeNcclCalls(std::string_view function);
int64_t FakeNcclKernels();

// Kernels of this process that wait for other ranks now, and have said what for.
int FakeNcclWaitingKernels();
// Whether a rank of the communicator has failed, aborted, or died.
bool FakeNcclIsGone(ncclComm_t comm, int rank);

// Of the bytes given to ncclCommRegister, those that NCCL registers: memory of ncclMemAlloc. Since
// the last FakeCudaCheckClean().
int64_t FakeNcclRegisteredBytes();

// What the last communicator of this process was made with.
ncclConfig_t FakeNcclLastConfig();

}  // namespace sluice

#endif  // SLUICE_TESTS_FAKES_FAKE_NCCL_H_
