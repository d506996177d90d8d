// What the kernel counts of this process.
#ifndef SLUICE_TESTS_SESSION_RESIDENT_BYTES_H_
#define SLUICE_TESTS_SESSION_RESIDENT_BYTES_H_

#include <cstdint>

namespace sluice::session_test {

// Memory that is resident.
int64_t ResidentBytes();
// The same, where what was freed before does not hide what comes. Blocks of a page or more that are
// allocated after the first call have pages of their own. These pages go when the blocks are freed.
// (The arenas of glibc keep the pages of their last free block. A thread takes over the arena of
// one that has ended. malloc_trim does not reach that block.)
int64_t ResidentBytesInUse();
// Memory that may be written to. What glibc only sets aside for another thread's arena, 64 MiB at
// once, is no part of it. 0 under sanitizers, which keep what was freed.
int64_t WritableBytes();

}  // namespace sluice::session_test

#endif  // SLUICE_TESTS_SESSION_RESIDENT_BYTES_H_
