// Counts, failures to come, the last error's words, and NCCL's small calls.
#include <array>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fakes/fake_cuda_call.h"
#include "fakes/fake_cuda_context.h"
#include "fakes/fake_cuda_state.h"
#include "fakes/fake_nccl.h"
#include "fakes/fake_nccl_comm.h"
#include "fakes/locked.h"

namespace sluice {
namespace fake_nccl {
namespace {

constexpr int64_t kDefaultTimeoutMs = 120000;
constexpr int64_t kDefaultPlanParts = 253;

struct Failure {
  std::string function;  // or empty: any
  int in_calls;
  ncclResult_t result;
  int device;  // or negative: any
};

struct KernelFailure {
  int rank;
  int in_kernels;
  ncclResult_t result;
};

struct Calls {
  std::mutex mutex;
  std::map<std::string, int64_t, std::less<>> counts;
  int64_t kernels = 0;
  int failed = 0;
  std::vector<Failure> failures;
  std::vector<KernelFailure> kernel_failures;
  int64_t timeout_ms = 0;
  int64_t plan_parts = kDefaultPlanParts;
  bool holds_aborts = false;
  int version = NCCL_VERSION_CODE;
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  std::string words;
};

Calls& TheCalls() {
  static auto* const calls = [] {
    auto* const made = new Calls;
    const char* const timeout = std::getenv("FAKE_NCCL_TIMEOUT_MS");
    made->timeout_ms = timeout == nullptr ? kDefaultTimeoutMs : std::atoll(timeout);
    return made;
  }();
  return *calls;
}

}  // namespace

ncclResult_t CountCall(const char* function) {
  const Locked calls(TheCalls());
  ++calls->counts[function];
  ncclResult_t result = ncclSuccess;
  for (Failure& failure : calls->failures) {
    if (!failure.function.empty() && failure.function != function) continue;
    if (failure.device >= 0 && failure.device != fake_cuda::CurrentDevice()) continue;
    if (--failure.in_calls != 0) continue;
    result = failure.result;
    calls->words = std::string(function) + " was made to fail";
    ++calls->failed;
  }
  return result;
}

ncclResult_t Fail(ncclResult_t result, std::string words) {
  const Locked calls(TheCalls());
  calls->words = std::move(words);
  return result;
}

ncclResult_t Misuse(ncclResult_t result, const std::string& words) {
  fake_cuda::AddMisuse(words);
  return Fail(result, words);
}

ncclResult_t CountKernel(int rank) {
  const Locked calls(TheCalls());
  ++calls->kernels;
  for (KernelFailure& failure : calls->kernel_failures) {
    if (failure.rank != rank || --failure.in_kernels != 0) continue;
    ++calls->failed;
    return failure.result;
  }
  return ncclSuccess;
}

int64_t TimeoutMs() { return Locked(TheCalls())->timeout_ms; }

int64_t PlanParts() { return Locked(TheCalls())->plan_parts; }

bool HoldsAborts() { return Locked(TheCalls())->holds_aborts; }

void RememberConfig(const ncclConfig_t& config) { Locked(TheCalls())->config = config; }

void ForgetCalls() {
  const Locked calls(TheCalls());
  calls->counts.clear();
  calls->failures.clear();
  calls->kernel_failures.clear();
  calls->kernels = calls->failed = 0;
}

namespace {

int Version() { return Locked(TheCalls())->version; }

const char* LastWords() {
  thread_local std::string words;
  const Locked calls(TheCalls());
  words = calls->words;
  return words.c_str();
}

}  // namespace
}  // namespace fake_nccl

void FakeNcclSetTimeout(int64_t milliseconds) {
  Locked(fake_nccl::TheCalls())->timeout_ms = milliseconds;
}

void FakeNcclSetPlanParts(int64_t parts) {
  Locked(fake_nccl::TheCalls())->plan_parts = parts == 0 ? fake_nccl::kDefaultPlanParts : parts;
}

void FakeNcclSetVersion(int version) {
  Locked(fake_nccl::TheCalls())->version = version == 0 ? NCCL_VERSION_CODE : version;
}

void FakeNcclHoldAborts(bool hold) { Locked(fake_nccl::TheCalls())->holds_aborts = hold; }

void FakeNcclFailAt(int nth_call, ncclResult_t result) { FakeNcclFailAt("", nth_call, result); }

void FakeNcclFailAt(std::string_view function, int nth_call, ncclResult_t result, int device) {
  const Locked calls(fake_nccl::TheCalls());
  calls->failures.push_back({std::string(function), nth_call, result, device});
}

void FakeNcclFailKernel(int rank, int nth_kernel, ncclResult_t result) {
  const Locked calls(fake_nccl::TheCalls());
  calls->kernel_failures.push_back({rank, nth_kernel, result});
}

void FakeNcclFailNoMore() {
  const Locked calls(fake_nccl::TheCalls());
  calls->failures.clear();
  calls->kernel_failures.clear();
}

int FakeNcclFailures() { return Locked(fake_nccl::TheCalls())->failed; }

int64_t FakeNcclCalls(std::string_view function) {
  const Locked calls(fake_nccl::TheCalls());
  const auto found = calls->counts.find(function);
  return found == calls->counts.end() ? 0 : found->second;
}

int64_t FakeNcclKernels() { return Locked(fake_nccl::TheCalls())->kernels; }

ncclConfig_t FakeNcclLastConfig() { return Locked(fake_nccl::TheCalls())->config; }

}  // namespace sluice

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  const ncclResult_t failure = sluice::fake_nccl::CountCall(__func__);
  if (failure != ncclSuccess) return failure;
  if (version == nullptr) return ncclInvalidArgument;
  *version = sluice::fake_nccl::Version();
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) {
  constexpr std::array kTexts = {"no error",
                                 "unhandled cuda error",
                                 "unhandled system error",
                                 "internal error",
                                 "invalid argument",
                                 "invalid usage",
                                 "remote process exited or there was a network error",
                                 "NCCL operation in progress"};
  const auto index = static_cast<size_t>(result);
  return index < kTexts.size() ? kTexts[index] : "unknown result code";
}

const char* ncclGetLastError(ncclComm_t) { return sluice::fake_nccl::LastWords(); }

}  // extern "C"
