// What measurements on a GPU have in common: errors end them, events time them.
#ifndef SLUICE_BENCH_MICRO_CUDA_TIMING_H_
#define SLUICE_BENCH_MICRO_CUDA_TIMING_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace sluice {

// Without destructors: they may wait for what has failed.
[[noreturn]] inline void End(const char* what, const char* why) {
  std::fprintf(stderr, "gpu_bench: %s: %s\n", what, why);
  std::fflush(stdout);
  std::_Exit(1);
}

// An error ends the program, with `what` failed.
inline void Check(cudaError_t error, const char* what) {
  if (error != cudaSuccess) End(what, cudaGetErrorString(error));
}

inline void Check(const absl::Status& status) {
  if (!status.ok()) End("failed", status.ToString().c_str());
}

template <typename T>
T Checked(absl::StatusOr<T> value) {
  Check(value.status());
  return *std::move(value);
}

inline void FillRandomly(std::byte* data, int64_t bytes, uint64_t seed) {
  uint64_t state = seed * 0x9E3779B97F4A7C15u + 1;
  for (int64_t i = 0; i + 8 <= bytes; i += 8) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    std::memcpy(data + i, &state, 8);
  }
}

// Milliseconds on the stream.
class Stopwatch {
 public:
  explicit Stopwatch(cudaStream_t stream) : stream_(stream) {
    Check(cudaEventCreateWithFlags(&begin_, cudaEventDefault), "cudaEventCreateWithFlags");
    Check(cudaEventCreateWithFlags(&end_, cudaEventDefault), "cudaEventCreateWithFlags");
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;
  ~Stopwatch() {
    (void)cudaEventDestroy(begin_);
    (void)cudaEventDestroy(end_);
  }

  template <class Work>
  double Time(const Work& work) {
    Check(cudaEventRecord(begin_, stream_), "cudaEventRecord");
    work();
    Check(cudaEventRecord(end_, stream_), "cudaEventRecord");
    Check(cudaEventSynchronize(end_), "cudaEventSynchronize");
    float milliseconds = 0;
    Check(cudaEventElapsedTime(&milliseconds, begin_, end_), "cudaEventElapsedTime");
    return double{milliseconds};
  }

 private:
  const cudaStream_t stream_;
  cudaEvent_t begin_ = nullptr;
  cudaEvent_t end_ = nullptr;
};

}  // namespace sluice

#endif  // SLUICE_BENCH_MICRO_CUDA_TIMING_H_
