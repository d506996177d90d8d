// Reads /proc/self/status.
#include "session/resident_bytes.h"

#include <malloc.h>

#include <fstream>
#include <string>

#include "absl/strings/string_view.h"
#include "gtest/gtest.h"

namespace sluice::session_test {
namespace {

// `field`: "VmRSS:".
int64_t StatusBytes(absl::string_view field) {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word) {
    int64_t kib = 0;
    if (word == field && status >> kib) return kib << 10;
  }
  ADD_FAILURE() << "the kernel does not say " << field;
  return 0;
}

}  // namespace

int64_t ResidentBytes() { return StatusBytes("VmRSS:"); }

int64_t WritableBytes() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return 0;
#else
  return StatusBytes("VmData:");
#endif
}

// A sanitizer brings an allocator of its own, so glibc's is not set up there. If two threads set it
// up at once by trimming it, they end in an assertion of glibc's when they exit.
int64_t ResidentBytesInUse() {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  constexpr int kPageBytes = 4096;
  mallopt(M_MMAP_THRESHOLD, kPageBytes);
  malloc_trim(0);
#endif
  return ResidentBytes();
}

}  // namespace sluice::session_test
