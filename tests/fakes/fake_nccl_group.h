// Groups of the fake NCCL: what a thread collects between a group's start and end.
#ifndef SLUICE_TESTS_FAKES_FAKE_NCCL_GROUP_H_
#define SLUICE_TESTS_FAKES_FAKE_NCCL_GROUP_H_

namespace sluice::fake_nccl {

// Whether this thread has started a group.
bool IsInGroup();

// Misuse if any thread has started a group and not ended it.
void CheckNoOpenGroup();

}  // namespace sluice::fake_nccl

#endif  // SLUICE_TESTS_FAKES_FAKE_NCCL_GROUP_H_
