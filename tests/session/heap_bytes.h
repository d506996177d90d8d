// Counts the bytes that this process has from operator new, what the allocator adds included. A
// program that links heap_bytes.cc replaces operator new.
#ifndef SLUICE_TESTS_SESSION_HEAP_BYTES_H_
#define SLUICE_TESTS_SESSION_HEAP_BYTES_H_

#include <cstdint>

namespace sluice::session_test {

// Now, by all threads.
int64_t HeapBytes();
// The most since it was reset, or since the beginning.
int64_t HeapBytesPeak();
void ResetHeapBytesPeak();

}  // namespace sluice::session_test

#endif  // SLUICE_TESTS_SESSION_HEAP_BYTES_H_
