// How libraries above the fake CUDA runtime take part in the check at the end of a test.
#ifndef SLUICE_TESTS_FAKES_FAKE_CUDA_CHECK_H_
#define SLUICE_TESTS_FAKES_FAKE_CUDA_CHECK_H_

namespace sluice::fake_cuda {

// FakeCudaCheckClean calls `check` first from now on. It reports what is left, and forgets it.
void AddCheck(void (*check)());

}  // namespace sluice::fake_cuda

#endif  // SLUICE_TESTS_FAKES_FAKE_CUDA_CHECK_H_
