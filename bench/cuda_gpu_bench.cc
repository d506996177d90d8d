// What the CUDA device reaches on a GPU, against cudaMemcpyAsync in the same run.
//
// usage: gpu_bench [--bytes N] [--repeats N] [--json FILE]
//
// Times are medians by CUDA events, of runs that alternate with the plain copy they are compared
// with. Rates count bytes read and bytes written. Each case has fresh random data, and its result
// is compared with what the host makes of the same data. Ends with 77 where there is no GPU.
#include <cuda_runtime_api.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "device/cuda_device.h"
#include "device/device.h"
#include "sluice/accelerator.h"
#include "sluice/cuda.h"
#include "tensor/run.h"

namespace sluice {
namespace {

struct Options {
  int64_t bytes = int64_t{1} << 30;
  int repeats = 11;
  std::string json;
};

void Check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "gpu_bench: %s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}

void Check(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "gpu_bench: %s\n", status.ToString().c_str());
  std::exit(1);
}

template <typename T>
T Checked(absl::StatusOr<T> value) {
  Check(value.status());
  return *std::move(value);
}

void FillRandomly(std::byte* data, int64_t bytes, uint64_t seed) {
  uint64_t state = seed * 0x9E3779B97F4A7C15u + 1;
  for (int64_t i = 0; i + 8 <= bytes; i += 8) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    std::memcpy(data + i, &state, 8);
  }
}

// What is measured: steps from src to dst, both as the host and as the GPU sees them.
struct Sides {
  const std::byte* src;
  std::byte* dst;
  DeviceKind src_kind;
  DeviceKind dst_kind;
};

struct Case {
  std::string name;
  int64_t src_bytes = 0;  // of memory
  int64_t dst_bytes = 0;
  int64_t read = 0;  // that are counted
  int64_t written = 0;
  DeviceKind src_kind = DeviceKind::kCuda;
  std::function<absl::Status(Device&, const Sides&, bool in_stream_order)> start;
};

// Rows of `row` bytes, every second one of a matrix, packed one behind the other; or back.
Case RowsCase(bool packs, int64_t row, int64_t bytes, DeviceKind src_kind = DeviceKind::kCuda) {
  const int64_t rows = bytes / row;
  Case made;
  made.name = std::string(src_kind == DeviceKind::kCuda ? "" : "pinned_") +
              (packs ? "pack_rows_" : "unpack_rows_") + std::to_string(row);
  made.src_bytes = packs ? 2 * bytes : bytes;
  made.dst_bytes = packs ? bytes : 2 * bytes;
  made.read = made.written = rows * row;
  made.src_kind = src_kind;
  made.start = [=](Device& device, const Sides& sides, bool in_stream_order) {
    const Run row_run = {0, 0, rows};
    const Run column_run = {0, 0, row / 2};
    StridedCopy copy;
    copy.dims = 2;
    copy.runs[0] = absl::MakeConstSpan(&row_run, 1);
    copy.runs[1] = absl::MakeConstSpan(&column_run, 1);
    copy.src_strides = {packs ? 2 * row : row, 2};
    copy.dst_strides = {packs ? row : 2 * row, 2};
    copy.src_dtype = copy.dst_dtype = DType::kBF16;
    copy.src = sides.src, copy.src_kind = sides.src_kind;
    copy.dst = sides.dst, copy.dst_kind = sides.dst_kind;
    copy.end = rows * row / 2;
    const std::array<StridedCopy, 1> copies = {copy};
    return device.Start({copies, 1, {}, {}, in_stream_order});
  };
  return made;
}

Case ContiguousCase(const std::string& name, DType from, DType to, int64_t elements,
                    DeviceKind src_kind = DeviceKind::kCuda) {
  Case made;
  made.name = name;
  made.src_bytes = made.read = elements * DTypeBytes(from);
  made.dst_bytes = made.written = elements * DTypeBytes(to);
  made.src_kind = src_kind;
  made.start = [=](Device& device, const Sides& sides, bool in_stream_order) {
    const Run all = {0, 0, elements};
    StridedCopy copy;
    copy.runs[0] = absl::MakeConstSpan(&all, 1);
    copy.src_strides[0] = DTypeBytes(from);
    copy.dst_strides[0] = DTypeBytes(to);
    copy.src_dtype = from;
    copy.dst_dtype = to;
    copy.src = sides.src, copy.src_kind = sides.src_kind;
    copy.dst = sides.dst, copy.dst_kind = sides.dst_kind;
    copy.end = elements;
    const std::array<StridedCopy, 1> copies = {copy};
    return device.Start({copies, 1, {}, {}, in_stream_order});
  };
  return made;
}

// A square matrix of f32, transposed.
Case TransposeCase(int64_t bytes) {
  int64_t side = 1;
  while (4 * side * side * 4 <= bytes) side *= 2;
  Case made;
  made.name = "transpose_f32";
  made.src_bytes = made.dst_bytes = made.read = made.written = side * side * 4;
  made.start = [=](Device& device, const Sides& sides, bool in_stream_order) {
    const Run all = {0, 0, side};
    StridedCopy copy;
    copy.dims = 2;
    copy.runs[0] = copy.runs[1] = absl::MakeConstSpan(&all, 1);
    copy.src_strides = {4, 4 * side};
    copy.dst_strides = {4 * side, 4};
    copy.src_dtype = copy.dst_dtype = DType::kF32;
    copy.src = sides.src, copy.src_kind = sides.src_kind;
    copy.dst = sides.dst, copy.dst_kind = sides.dst_kind;
    copy.end = side * side;
    const std::array<StridedCopy, 1> copies = {copy};
    return device.Start({copies, 1, {}, {}, in_stream_order});
  };
  return made;
}

// Pieces of about 8 KiB at no regular distances, so that each is one of a table.
Case ScatteredCase(int64_t bytes) {
  std::vector<Run> runs;
  int64_t src = 0;
  int64_t elements = 0;
  for (uint64_t i = 0; elements + 8192 <= bytes / 2; ++i) {
    const auto length = static_cast<int64_t>(3072 + (i * 2654435761u >> 7) % 2048 / 8 * 8);
    runs.push_back({src, elements, length});
    elements += length;
    src += length + static_cast<int64_t>((i * 40503u >> 3) % 64 * 8);
  }
  Case made;
  made.name = "pack_scattered_8k";
  made.src_bytes = 2 * src;
  made.dst_bytes = made.read = made.written = 2 * elements;
  made.start = [=](Device& device, const Sides& sides, bool in_stream_order) {
    StridedCopy copy;
    copy.runs[0] = runs;
    copy.src_strides[0] = copy.dst_strides[0] = 2;
    copy.src_dtype = copy.dst_dtype = DType::kBF16;
    copy.src = sides.src, copy.src_kind = sides.src_kind;
    copy.dst = sides.dst, copy.dst_kind = sides.dst_kind;
    copy.end = elements;
    const std::array<StridedCopy, 1> copies = {copy};
    return device.Start({copies, 1, {}, {}, in_stream_order});
  };
  return made;
}

Case NormalizeCase(int64_t elements) {
  Case made;
  made.name = "normalize_u8_to_bf16";
  made.src_bytes = made.read = elements;
  made.dst_bytes = made.written = 2 * elements;
  made.start = [=](Device& device, const Sides& sides, bool in_stream_order) {
    const std::array<Normalization, 1> all = {Normalization{DType::kU8, DType::kBF16, 0.017f, -1.9f,
                                                            sides.src, sides.dst, elements,
                                                            sides.src_kind, sides.dst_kind}};
    return device.Start({{}, 1, {}, all, in_stream_order});
  };
  return made;
}

std::vector<Case> AllCases(int64_t bytes) {
  std::vector<Case> cases;
  cases.push_back(ContiguousCase("copy", DType::kBF16, DType::kBF16, bytes / 2));
  for (const int64_t row : {64, 128, 256, 512, 1024, 4096, 16384, 65536, 1 << 20}) {
    cases.push_back(RowsCase(true, row, bytes));
    cases.push_back(RowsCase(false, row, bytes));
  }
  cases.push_back(ContiguousCase("cast_f32_to_bf16", DType::kF32, DType::kBF16, bytes / 4));
  cases.push_back(ContiguousCase("cast_bf16_to_f32", DType::kBF16, DType::kF32, bytes / 4));
  cases.push_back(ContiguousCase("cast_bf16_to_f8e4m3", DType::kBF16, DType::kF8E4M3, bytes / 2));
  cases.push_back(NormalizeCase(bytes / 2));
  cases.push_back(ScatteredCase(bytes));
  cases.push_back(TransposeCase(bytes));
  cases.push_back(
      ContiguousCase("pinned_copy", DType::kU8, DType::kU8, bytes / 4, DeviceKind::kCudaHost));
  cases.push_back(RowsCase(true, 2048, bytes / 8, DeviceKind::kCudaHost));
  return cases;
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
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

// Until all batches have been given out.
void Finish(Device& device, int batches) {
  while (batches > 0) {
    std::array<uint64_t, 16> cookies;
    batches -= Checked(device.Poll(absl::MakeSpan(cookies)));
  }
}

nlohmann::json Measure(CudaDevice& device, Device& host, const Case& one, int repeats,
                       uint64_t seed) {
  const auto src_bytes = static_cast<size_t>(one.src_bytes);
  const auto dst_bytes = static_cast<size_t>(one.dst_bytes);
  const bool pinned = one.src_kind == DeviceKind::kCudaHost;
  const DeviceMemory content = Checked(device.AllocateStaging(src_bytes));
  const DeviceMemory result = Checked(device.AllocateStaging(dst_bytes));
  const DeviceMemory expected = Checked(host.AllocateBuffer(dst_bytes));
  DeviceMemory src;
  if (!pinned) src = Checked(device.AllocateBuffer(src_bytes));
  const DeviceMemory dst = Checked(device.AllocateBuffer(dst_bytes));
  // Of the plain copy: as many bytes as are read and written here, half of them each; or read,
  // from pinned memory, as that is the narrow side.
  const auto plain_bytes = static_cast<size_t>(pinned ? one.read : (one.read + one.written) / 2);
  const DeviceMemory plain_src = pinned ? Checked(device.AllocateStaging(plain_bytes))
                                        : Checked(device.AllocateBuffer(plain_bytes));
  const DeviceMemory plain_dst = Checked(device.AllocateBuffer(plain_bytes));
  FillRandomly(content.data(), one.src_bytes, seed);
  if (!pinned) {
    Check(cudaMemcpy(src.data(), content.data(), src_bytes, cudaMemcpyDefault), "cudaMemcpy");
  }
  Check(cudaMemsetAsync(dst.data(), 0, dst_bytes, device.stream()), "cudaMemsetAsync");

  const Sides sides = {pinned ? content.data() : src.data(), dst.data(), one.src_kind,
                       DeviceKind::kCuda};
  Stopwatch stopwatch(device.stream());
  std::vector<double> times;
  std::vector<double> plain_times;
  for (int i = -2; i < repeats; ++i) {  // the first two only warm up
    const double plain = stopwatch.Time([&] {
      Check(cudaMemcpyAsync(plain_dst.data(), plain_src.data(), plain_bytes, cudaMemcpyDefault,
                            device.stream()),
            "cudaMemcpyAsync");
    });
    const double ours = stopwatch.Time([&] {
      Check(one.start(device, sides, true));
      Finish(device, 1);
    });
    if (i < 0) continue;
    plain_times.push_back(plain);
    times.push_back(ours);
  }

  Check(one.start(host, {content.data(), expected.data(), DeviceKind::kCpu, DeviceKind::kCpu},
                  false));
  Finish(host, 1);
  Check(cudaMemcpy(result.data(), dst.data(), dst_bytes, cudaMemcpyDefault), "cudaMemcpy");
  if (std::memcmp(result.data(), expected.data(), dst_bytes) != 0) {
    Check(absl::InternalError(one.name + ": the result is wrong"));
  }
  const double ms = Median(times);
  const double plain_ms = Median(plain_times);
  const auto traffic = static_cast<double>(pinned ? one.read : one.read + one.written);
  std::printf("%-24s %9.3f ms  %8.1f GB/s  plain copy %9.3f ms  ratio %.3f\n", one.name.c_str(), ms,
              traffic / ms * 1e-6, plain_ms, plain_ms / ms);
  std::fflush(stdout);
  return {{"name", one.name},       {"bytes_read", one.read},    {"bytes_written", one.written},
          {"median_ms", ms},        {"plain_copy_ms", plain_ms}, {"gb_per_s", traffic / ms * 1e-6},
          {"ratio", plain_ms / ms}, {"repeats", repeats},        {"checked", true}};
}

int RunAll(const Options& options) {
  const std::shared_ptr<Accelerator> accelerator = Checked(MakeCudaAccelerator());
  CudaDeviceOptions device_options;
  device_options.ordinal = accelerator->ordinal();
  const std::unique_ptr<CudaDevice> device = Checked(CudaDevice::Create(device_options));
  const std::unique_ptr<Device> host = MakeHostDevice();
  int driver = 0;
  int runtime = 0;
  Check(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  Check(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
  std::printf("%s, driver for CUDA %d, runtime %d\n", accelerator->description().c_str(), driver,
              runtime);
  nlohmann::json report = {{"device", accelerator->description()},
                           {"driver_version", driver},
                           {"runtime_version", runtime},
                           {"bytes", options.bytes},
                           {"cases", nlohmann::json::array()}};
  uint64_t seed = 1;
  for (const Case& one : AllCases(options.bytes)) {
    report["cases"].push_back(Measure(*device, *host, one, options.repeats, seed++));
  }
  if (options.json.empty()) return 0;
  std::ofstream file(options.json);
  file << report.dump(2) << "\n";
  file.close();
  if (!file) Check(absl::InternalError("cannot write " + options.json));
  return 0;
}

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) {
  sluice::Options options;
  CLI::App app("What the CUDA device reaches on a GPU");
  app.add_option("--bytes", options.bytes, "of each case's packed side");
  app.add_option("--repeats", options.repeats, "of each measurement");
  app.add_option("--json", options.json, "file for the results");
  CLI11_PARSE(app, argc, argv);
  int devices = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&devices);
      error != cudaSuccess || devices == 0) {
    std::printf("no GPU here: %s\n", cudaGetErrorString(error));
    return 77;
  }
  return sluice::RunAll(options);
}
