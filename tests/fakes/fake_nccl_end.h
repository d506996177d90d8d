// The ends of the fake NCCL's communicators.
#ifndef SLUICE_TESTS_FAKES_FAKE_NCCL_END_H_
#define SLUICE_TESTS_FAKES_FAKE_NCCL_END_H_

namespace sluice::fake_nccl {

// Waits, for some time at most, for what ends on threads of its own: it is not left.
void WaitForEnding();

}  // namespace sluice::fake_nccl

#endif  // SLUICE_TESTS_FAKES_FAKE_NCCL_END_H_
