// Reads /proc/self/status.
#include "session/resident_bytes.h"

#include <malloc.h>

#include <fstream>
#include <string>

#include "gtest/gtest.h"

namespace sluice::session_test {

int64_t ResidentBytes() {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word) {
    int64_t kib = 0;
    if (word == "VmRSS:" && status >> kib) return kib << 10;
  }
  ADD_FAILURE() << "the kernel does not say what is resident";
  return 0;
}

int64_t ResidentBytesInUse() {
  constexpr int kPageBytes = 4096;
  mallopt(M_MMAP_THRESHOLD, kPageBytes);
  malloc_trim(0);
  return ResidentBytes();
}

}  // namespace sluice::session_test
