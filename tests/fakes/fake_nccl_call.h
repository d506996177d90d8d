// How every call of the fake NCCL begins and ends: counted, failed if asked for, and with words for
// what went wrong.
#ifndef SLUICE_TESTS_FAKES_FAKE_NCCL_CALL_H_
#define SLUICE_TESTS_FAKES_FAKE_NCCL_CALL_H_

#include <cstdint>
#include <string>

#include "nccl.h"

namespace sluice::fake_nccl {

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

}  // namespace sluice::fake_nccl

#endif  // SLUICE_TESTS_FAKES_FAKE_NCCL_CALL_H_
