// Errors, random bytes and medians.
#include "micro/cuda_timing.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace sluice {
namespace {

// Without destructors: they may wait for what has failed.
[[noreturn]] void End(const char* what, const char* why) {
  std::fprintf(stderr, "gpu_bench: %s: %s\n", what, why);
  std::fflush(stdout);
  std::_Exit(1);
}

}  // namespace

void Check(cudaError_t error, const char* what) {
  if (error != cudaSuccess) End(what, cudaGetErrorString(error));
}

void Check(const absl::Status& status) {
  if (!status.ok()) End("failed", status.ToString().c_str());
}

void FillRandomly(std::byte* data, int64_t bytes, uint64_t seed) {
  uint64_t state = seed * 0x9E3779B97F4A7C15u + 1;
  for (int64_t i = 0; i + 8 <= bytes; i += 8) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    std::memcpy(data + i, &state, 8);
  }
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace sluice
