// Slow kernels on both sides of a run.
#include "cuda/cuda_stream_job.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "session/specs.h"

namespace sluice::session_test {
namespace {

constexpr int64_t kElements = 8 << 10;  // of each tensor on each rank
constexpr size_t kBytes = kElements * sizeof(double);

enum class Path { kCrosses, kHalves, kStays };
Path PathOf(int tensor) { return static_cast<Path>(tensor % 3); }

}  // namespace

TransferSpec StreamJobSpec(int tensors) {
  TransferSpec spec;
  for (int t = 0; t < tensors; ++t) {
    TensorTransfer tensor;
    tensor.name = absl::StrCat("t", t);
    tensor.shape = {2, kElements};
    tensor.src_dtype = tensor.dst_dtype = DType::kF64;
    tensor.window = t;
    tensor.src = MakeLayout({2}, {0, 1}, "S(0)");
    tensor.dst = PathOf(t) == Path::kCrosses  ? MakeLayout({2}, {1, 0}, "S(0)")
                 : PathOf(t) == Path::kHalves ? MakeLayout({2}, {0, 1}, "S(1)")
                                              : tensor.src;
    spec.tensors.push_back(tensor);
  }
  return spec;
}

StreamJob::StreamJob(int rank, const StreamJobOptions& options)
    : rank_(rank), options_(options), ordinal_(options.ordinal.value_or(rank)) {
  EXPECT_EQ(cudaSetDevice(ordinal_), cudaSuccess);
  if (options.stream != StreamKind::kDefault) {
    const unsigned flags =
        options.stream == StreamKind::kOwn ? cudaStreamNonBlocking : cudaStreamDefault;
    EXPECT_EQ(cudaStreamCreateWithFlags(&stream_, flags), cudaSuccess);
  }
  kernels_ = std::make_unique<StreamKernels>(stream_, kBytes);
  for (int t = 0; t < options.tensors; ++t) src_.push_back(Allocate(DeviceKind::kCuda));
  const int buffers = options.given == Given::kAsked ? 2 : options.tensors;
  for (int i = 0; i < buffers; ++i) dst_.push_back(Allocate(options.dst_kind));
}

StreamJob::~StreamJob() {
  Synchronize();
  for (const Memory& memory : src_) EXPECT_EQ(cudaFree(memory.data), cudaSuccess);
  for (const Memory& memory : dst_) {
    EXPECT_EQ(options_.dst_kind == DeviceKind::kCuda ? cudaFree(memory.data)
                                                     : cudaHostUnregister(memory.data),
              cudaSuccess);
  }
  if (stream_ != nullptr) {
    EXPECT_EQ(cudaStreamDestroy(stream_), cudaSuccess);
  }
}

StreamJob::Memory StreamJob::Allocate(DeviceKind kind) {
  void* data = nullptr;
  if (kind == DeviceKind::kCuda) {
    EXPECT_EQ(cudaMalloc(&data, kBytes), cudaSuccess);
  } else {
    // Pages of its own: no page can be registered twice.
    pinned_.emplace_back(std::aligned_alloc(4096, kBytes), &std::free);
    data = pinned_.back().get();
    EXPECT_EQ(cudaHostRegister(data, kBytes, cudaHostRegisterDefault), cudaSuccess);
  }
  return {static_cast<double*>(data), kind};
}

StreamJob::Memory StreamJob::DstOf(int tensor) const {
  return dst_[static_cast<size_t>(tensor) % dst_.size()];
}

TensorView StreamJob::ViewOf(const Memory& memory, bool is_dst, int tensor) const {
  const bool by_columns = is_dst && PathOf(tensor) == Path::kHalves;
  TensorView view = by_columns ? DenseView(memory.data, {2, kElements / 2}, DType::kF64)
                               : DenseView(memory.data, {1, kElements}, DType::kF64);
  view.device = memory.kind;
  view.device_ordinal = view.device == DeviceKind::kCuda ? ordinal_ : 0;
  return view;
}

double StreamJob::ValueOf(int tensor, int rank) const {
  return 10000 * round_ + 10 * tensor + rank;
}

double StreamJob::ExpectedOf(int tensor, size_t element) const {
  switch (PathOf(tensor)) {
    case Path::kCrosses:
      return ValueOf(tensor, 1 - rank_);
    case Path::kHalves:
      return ValueOf(tensor, element < kElements / 2 ? 0 : 1);
    case Path::kStays:
      break;
  }
  return ValueOf(tensor, rank_);
}

void StreamJob::Launch(const Memory& memory, int slow_us,
                       const std::function<void(double*)>& kernel) {
  // The default stream is the current device's.
  EXPECT_EQ(cudaSetDevice(ordinal_), cudaSuccess);
  kernels_->Launch(memory.data, memory.kind, kBytes, [slow_us, kernel](void* data) {
    std::this_thread::sleep_for(std::chrono::microseconds(slow_us));
    kernel(static_cast<double*>(data));
  });
}

absl::Status StreamJob::Start(Session* session, Transfer* transfer, int round) {
  Synchronize();  // kernels of the run before
  session_ = session;
  round_ = round;
  const size_t count = src_.size();
  told_.assign(count, 0);
  wrong_.assign(count, 0);
  keeps_memory_ = false;
  failed_ = 0;
  std::vector<TensorView> src;
  std::vector<TensorView> dst;
  for (int t = 0; t < options_.tensors; ++t) {
    const Memory& memory = src_[static_cast<size_t>(t)];
    Launch(memory, 300,
           [value = ValueOf(t, rank_)](double* data) { std::fill(data, data + kElements, value); });
    src.push_back(ViewOf(memory, false, t));
    dst.push_back(options_.given == Given::kAtStart ? ViewOf(DstOf(t), true, t) : TensorView());
  }
  const absl::StatusOr<Run> run =
      session->Start(transfer, src, dst,
                     {.events = true,
                      .late_destinations = options_.given != Given::kAtStart,
                      .stream = StreamHandle{stream_}});
  if (!run.ok()) return run.status();
  run_ = *run;
  if (options_.given == Given::kAhead) {
    for (int t = 0; t < options_.tensors; ++t) Supply(t);
  }
  return absl::OkStatus();
}

void StreamJob::Supply(int tensor) {
  Launch(DstOf(tensor), 1000, [](double* data) { std::fill(data, data + kElements, -5.0); });
  const TensorView view = ViewOf(DstOf(tensor), true, tensor);
  absl::Status status = run_.Supply(tensor, view);
  if (!status.ok() && may_be_refused_) status = run_.Supply(tensor, view);
  EXPECT_TRUE(status.ok() || may_be_refused_) << status;
}

void StreamJob::Consume(int tensor) {
  EXPECT_EQ(told_[static_cast<size_t>(tensor)]++, 0) << "tensor " << tensor;
  Launch(DstOf(tensor), 500, [this, tensor](double* data) {
    int64_t wrong = 0;
    for (size_t i = 0; i < kElements; ++i) wrong += data[i] != ExpectedOf(tensor, i) ? 1 : 0;
    wrong_[static_cast<size_t>(tensor)] = wrong;
    std::fill(data, data + kElements, -1.0);
  });
  Launch(src_[static_cast<size_t>(tensor)], 0,
         [](double* data) { std::fill(data, data + kElements, -2.0); });
}

void StreamJob::Take(const Event& event) {
  switch (event.kind) {
    case Event::Kind::kNeedsMemory:
      if (options_.given == Given::kAhead) return;  // it has come meanwhile
      EXPECT_EQ(options_.given, Given::kAsked);
      if (!keeps_memory_) Supply(event.tensor);
      return;
    case Event::Kind::kTensorDone:
      Consume(event.tensor);
      return;
    case Event::Kind::kFailed:
      ++failed_;
      return;
  }
}

void StreamJob::ConsumeRest() {
  for (int t = 0; t < options_.tensors; ++t) {
    if (told_[static_cast<size_t>(t)] == 0) Consume(t);
  }
}

void StreamJob::Synchronize() const {
  EXPECT_EQ(cudaSetDevice(ordinal_), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
}

int StreamJob::CountWrong() const {
  Synchronize();
  return static_cast<int>(
      std::count_if(wrong_.begin(), wrong_.end(), [](int64_t n) { return n > 0; }));
}

int StreamJob::done() const {
  return static_cast<int>(std::count_if(told_.begin(), told_.end(), [](int n) { return n > 0; }));
}

absl::Status Complete(Session* session, const std::vector<StreamJob*>& jobs) {
  const auto is_done = [](const StreamJob* job) { return job->run().IsDone(); };
  const auto take_all = [&] {
    Event event;
    while (session->PollEvent(&event)) {
      for (StreamJob* const job : jobs) {
        if (job->run() == event.run) job->Take(event);
      }
    }
  };
  while (!std::all_of(jobs.begin(), jobs.end(), is_done)) {
    if (absl::Status status = session->Poll(); !status.ok()) break;
    take_all();
  }
  absl::Status first;
  for (const StreamJob* const job : jobs) first.Update(job->run().Wait());
  take_all();
  return first;
}

}  // namespace sluice::session_test
