// Counts heap allocations of the calling thread. A program that links allocation_count.cc replaces
// operator new.
#ifndef SLUICE_TESTS_SESSION_ALLOCATION_COUNT_H_
#define SLUICE_TESTS_SESSION_ALLOCATION_COUNT_H_

#include <cstdint>

namespace sluice::session_test {

// Calls of operator new by this thread so far.
int64_t AllocationCount();

}  // namespace sluice::session_test

#endif  // SLUICE_TESTS_SESSION_ALLOCATION_COUNT_H_
