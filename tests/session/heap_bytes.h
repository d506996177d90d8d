// Counts what operator new gives: the bytes of this process, what the allocator adds included, and
// the calls of a thread. A program that links heap_bytes.cc replaces operator new.
#ifndef SLUICE_TESTS_SESSION_HEAP_BYTES_H_
#define SLUICE_TESTS_SESSION_HEAP_BYTES_H_

#include <cstdint>

namespace sluice::session_test {

// Now, by all threads.
int64_t HeapBytes();
// The most since it was reset, or since the beginning.
int64_t HeapBytesPeak();
void ResetHeapBytesPeak();
// Calls of operator new by this thread so far.
int64_t AllocationCount();

}  // namespace sluice::session_test

#endif  // SLUICE_TESTS_SESSION_HEAP_BYTES_H_
