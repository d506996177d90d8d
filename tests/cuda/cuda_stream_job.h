// One rank's run in a stream of the caller's. The stream's kernels are slow. They make the sources,
// and use the destinations as soon as events allow it.
#ifndef SLUICE_TESTS_CUDA_CUDA_STREAM_JOB_H_
#define SLUICE_TESTS_CUDA_CUDA_STREAM_JOB_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "cuda/cuda_stream_kernels.h"
#include "session/world.h"
#include "sluice/session.h"

namespace sluice::session_test {

// Where the stream comes from.
enum class StreamKind { kOwn, kBlocking, kDefault };

// When destinations get their memory.
enum class Given {
  kAtStart,
  kAhead,  // right after Start, each tensor memory of its own
  kAsked,  // when NeedsMemory says so, in turns one of two buffers
};

struct StreamJobOptions {
  int tensors = 24;
  StreamKind stream = StreamKind::kOwn;
  Given given = Given::kAtStart;
  DeviceKind dst_kind = DeviceKind::kCuda;  // or kCudaHost
  std::optional<int> ordinal = {};          // the rank's GPU; not set: the one of its number
};

// Tensors cross to the other one of two ranks, stay, or do both by halves, in turns. Each is a
// window.
TransferSpec StreamJobSpec(int tensors);

class StreamJob {
 public:
  // Rank `rank` of two.
  StreamJob(int rank, const StreamJobOptions& options);
  ~StreamJob();
  StreamJob(const StreamJob&) = delete;
  StreamJob& operator=(const StreamJob&) = delete;

  // Waits for the stream, puts kernels into it that fill the sources, and starts the run behind
  // them, with events.
  absl::Status Start(Session* session, Transfer* transfer, int round);
  Run run() const { return run_; }

  // To be told of the run's events. Memory is supplied while its former owner still writes to it.
  // What is done is verified, and then spoilt, source and destination, by kernels of the stream.
  void Take(const Event& event);
  // Supplies nothing more to this run.
  void KeepMemory() { keeps_memory_ = true; }
  // From now on what is supplied may be refused, and is supplied once more then.
  void AllowRefusal() { may_be_refused_ = true; }

  // Does the same with all tensors that no event told of.
  void ConsumeRest();
  // Waits for the stream.
  void Synchronize() const;
  // Waits for the stream; of how many tensors an element was wrong.
  int CountWrong() const;
  int done() const;                       // tensors that were, or will be, verified
  int failed() const { return failed_; }  // events that told of a failure

 private:
  struct Memory {
    double* data = nullptr;
    DeviceKind kind = DeviceKind::kCuda;
  };
  Memory Allocate(DeviceKind kind);
  Memory DstOf(int tensor) const;
  TensorView ViewOf(const Memory& memory, bool is_dst, int tensor) const;
  void Supply(int tensor);
  void Consume(int tensor);
  void Launch(const Memory& memory, int slow_us, const std::function<void(double*)>& kernel);
  double ValueOf(int tensor, int rank) const;
  double ExpectedOf(int tensor, size_t element) const;

  const int rank_;
  const StreamJobOptions options_;
  const int ordinal_;
  cudaStream_t stream_ = nullptr;
  std::unique_ptr<StreamKernels> kernels_;
  std::vector<Memory> src_;
  std::vector<Memory> dst_;
  std::vector<std::unique_ptr<void, void (*)(void*)>> pinned_;
  Session* session_ = nullptr;
  Run run_;
  int round_ = 0;
  bool keeps_memory_ = false;
  bool may_be_refused_ = false;
  int failed_ = 0;
  std::vector<int> told_;
  std::vector<int64_t> wrong_;  // elements of each tensor, as the stream found it
};

// Polls, and hands events out, until all runs are done and all events are taken; the first error.
absl::Status Complete(Session* session, const std::vector<StreamJob*>& jobs);

}  // namespace sluice::session_test

#endif  // SLUICE_TESTS_CUDA_CUDA_STREAM_JOB_H_
