// What measurements on a GPU have in common: errors end them, events time them.
#ifndef SLUICE_BENCH_MICRO_CUDA_TIMING_H_
#define SLUICE_BENCH_MICRO_CUDA_TIMING_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace sluice {

// An error ends the program, with `what` failed.
void Check(cudaError_t error, const char* what);
void Check(const absl::Status& status);

template <typename T>
T Checked(absl::StatusOr<T> value) {
  Check(value.status());
  return *std::move(value);
}

void FillRandomly(std::byte* data, int64_t bytes, uint64_t seed);

double Median(std::vector<double> values);

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
