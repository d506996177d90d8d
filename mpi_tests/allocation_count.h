// Counts what this program allocates with operator new, on one thread.
#ifndef SLUICE_MPI_TESTS_ALLOCATION_COUNT_H_
#define SLUICE_MPI_TESTS_ALLOCATION_COUNT_H_

#include <cstdint>

namespace sluice {

// Calls of operator new since the program began.
int64_t AllocationCount();

}  // namespace sluice

#endif  // SLUICE_MPI_TESTS_ALLOCATION_COUNT_H_
