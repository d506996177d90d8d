// What the CUDA device reaches on a GPU, against cudaMemcpyAsync in the same run; and against the
// vendor's batched copies, for pieces that these take.
//
// usage: gpu_bench [--bytes N] [--repeats N] [--json FILE]
//
// Times are medians by CUDA events, of runs that take turns with the copies they are compared
// with. Rates count bytes read and bytes written. Each case has fresh random data, and its result
// is compared with what the host makes of the same data. Ends with 77 where there is no GPU.
#include <cuda_runtime_api.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "device/cuda/cuda_device.h"
#include "device/device.h"
#include "micro/cuda_batched_copies.h"
#include "micro/cuda_cases.h"
#include "micro/cuda_timing.h"
#include "report/spread.h"
#include "sluice/accelerator.h"
#include "sluice/cuda.h"

namespace sluice {
namespace {

struct Options {
  int64_t bytes = int64_t{1} << 30;
  int repeats = 11;
  std::string json;
};

// Until all batches have been given out.
void Finish(Device& device, int batches) {
  while (batches > 0) {
    std::array<uint64_t, 16> cookies;
    batches -= Checked(device.Poll(absl::MakeSpan(cookies)));
  }
}

// Memory of a case. The host's copy of the source is pinned.
struct Memory {
  Memory(CudaDevice& device, Device& host, const Case& one)
      : pinned(one.src_kind == DeviceKind::kCudaHost),
        src_bytes(static_cast<size_t>(one.src_bytes)),
        dst_bytes(static_cast<size_t>(one.dst_bytes)),
        // Of the plain copy: as many bytes as are read and written here, half of them each; or
        // read, from pinned memory, as that is the narrow side.
        plain_bytes(static_cast<size_t>(pinned ? one.read : (one.read + one.written) / 2)),
        content(Checked(device.AllocateStaging(src_bytes))),
        result(Checked(device.AllocateStaging(dst_bytes))),
        expected(Checked(host.AllocateBuffer(dst_bytes))),
        dst(Checked(device.AllocateBuffer(dst_bytes))),
        plain_src(Checked(pinned ? device.AllocateStaging(plain_bytes)
                                 : device.AllocateBuffer(plain_bytes))),
        plain_dst(Checked(device.AllocateBuffer(plain_bytes))) {
    if (!pinned) src = Checked(device.AllocateBuffer(src_bytes));
  }

  const std::byte* source() const { return pinned ? content.data() : src.data(); }

  const bool pinned;
  const size_t src_bytes;
  const size_t dst_bytes;
  const size_t plain_bytes;
  DeviceMemory content, result, expected, src, dst, plain_src, plain_dst;
};

// One way to do what a case does, and how long it took.
struct Way {
  std::string name;
  std::function<void()> run;
  std::vector<double> times;
};

// What a rival gets of the case's pieces.
CopyPieces PiecesOf(const Case& one, const Memory& memory) {
  CopyPieces pieces;
  for (const CasePiece& piece : one.pieces) {
    pieces.srcs.push_back(memory.source() + piece.src);
    pieces.dsts.push_back(memory.dst.data() + piece.dst);
    pieces.bytes.push_back(static_cast<size_t>(piece.bytes));
  }
  return pieces;
}

// Those that this toolkit and driver have.
std::vector<std::unique_ptr<BatchedCopy>> RivalsFor(const CopyPieces& pieces, cudaStream_t stream) {
  std::vector<std::unique_ptr<BatchedCopy>> rivals;
  if (pieces.bytes.empty()) return rivals;
  for (auto* const make : {&MakeMemcpyBatch, &MakeCubBatch}) {
    std::unique_ptr<BatchedCopy> rival = make(pieces);
    if (rival == nullptr) continue;
    if (const cudaError_t error = rival->Start(stream); error != cudaSuccess) {
      std::printf("  %s is left out: %s\n", rival->name(), cudaGetErrorString(error));
      (void)cudaGetLastError();  // the next call would report it
      continue;
    }
    rivals.push_back(std::move(rival));
  }
  return rivals;
}

// Runs them in turns.
void TimeAll(cudaStream_t stream, int repeats, std::vector<Way>* ways) {
  Stopwatch stopwatch(stream);
  for (int i = -2; i < repeats; ++i) {  // the first two only warm up
    for (Way& way : *ways) {
      const double ms = stopwatch.Time(way.run);
      if (i >= 0) way.times.push_back(ms);
    }
  }
}

// Does it once more, into memory that has nothing of it. Whether the result is right.
bool CheckResult(cudaStream_t stream, const Way& way, const std::string& name, Memory* memory) {
  Check(cudaMemsetAsync(memory->dst.data(), 0, memory->dst_bytes, stream), "cudaMemsetAsync");
  way.run();
  Check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  Check(cudaMemcpy(memory->result.data(), memory->dst.data(), memory->dst_bytes, cudaMemcpyDefault),
        "cudaMemcpy");
  if (std::memcmp(memory->result.data(), memory->expected.data(), memory->dst_bytes) == 0) {
    return true;
  }
  std::printf("%s by %s: the result is wrong\n", name.c_str(), way.name.c_str());
  return false;
}

// The first way is the plain copy, the second one Sluice's; the others are rivals.
nlohmann::json Report(const Case& one, const std::vector<Way>& ways, int repeats) {
  const bool pinned = one.src_kind == DeviceKind::kCudaHost;
  const auto traffic = static_cast<double>(pinned ? one.read : one.read + one.written);
  const double plain_ms = bench::Median(ways[0].times);
  const auto row = [&](const std::string& name, const Way& way) {
    const double ms = bench::Median(way.times);
    std::printf("%-28s %9.3f ms  %8.1f GB/s  plain copy %9.3f ms  ratio %.3f\n", name.c_str(), ms,
                traffic / ms * 1e-6, plain_ms, plain_ms / ms);
    return nlohmann::json({{"name", name},
                           {"median_ms", ms},
                           {"gb_per_s", traffic / ms * 1e-6},
                           {"ratio", plain_ms / ms}});
  };
  nlohmann::json report = row(one.name, ways[1]);
  report.update({{"bytes_read", one.read},
                 {"bytes_written", one.written},
                 {"plain_copy_ms", plain_ms},
                 {"repeats", repeats},
                 {"checked", true}});
  for (size_t i = 2; i < ways.size(); ++i) {
    report["rivals"].push_back(row("  " + ways[i].name, ways[i]));
    report["rivals"].back()["name"] = ways[i].name;
  }
  std::fflush(stdout);
  return report;
}

nlohmann::json Measure(CudaDevice& device, Device& host, const Case& one, int repeats,
                       uint64_t seed) {
  Memory memory(device, host, one);
  FillRandomly(memory.content.data(), one.src_bytes, seed);
  if (!memory.pinned) {
    Check(cudaMemcpy(memory.src.data(), memory.content.data(), memory.src_bytes, cudaMemcpyDefault),
          "cudaMemcpy");
  }
  Check(one.start(
      host, {memory.content.data(), memory.expected.data(), DeviceKind::kCpu, DeviceKind::kCpu},
      false));
  Finish(host, 1);

  cudaStream_t stream = device.fill_stream();
  const Sides sides = {memory.source(), memory.dst.data(), one.src_kind, DeviceKind::kCuda};
  std::vector<Way> ways;
  ways.push_back({"plain copy",
                  [&] {
                    Check(cudaMemcpyAsync(memory.plain_dst.data(), memory.plain_src.data(),
                                          memory.plain_bytes, cudaMemcpyDefault, stream),
                          "cudaMemcpyAsync");
                  },
                  {}});
  ways.push_back({"sluice",
                  [&] {
                    Check(one.start(device, sides, true));
                    Finish(device, 1);
                  },
                  {}});
  const CopyPieces pieces = PiecesOf(one, memory);
  const std::vector<std::unique_ptr<BatchedCopy>> rivals = RivalsFor(pieces, stream);
  for (const auto& rival : rivals) {
    ways.push_back(
        {rival->name(), [&rival, stream] { Check(rival->Start(stream), rival->name()); }, {}});
  }
  TimeAll(stream, repeats, &ways);
  bool right = true;
  for (size_t i = 1; i < ways.size(); ++i) {
    right = CheckResult(stream, ways[i], one.name, &memory) && right;
  }
  nlohmann::json report = Report(one, ways, repeats);
  report["right"] = right;
  return report;
}

// After each case: what has been measured outlives a case that hangs.
void Write(const nlohmann::json& report, const std::string& path) {
  if (path.empty()) return;
  std::ofstream file(path);
  file << report.dump(2) << "\n";
  file.close();
  if (!file) Check(absl::InternalError("cannot write " + path));
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
  int wrong = 0;
  for (const Case& one : AllCases(options.bytes)) {
    report["cases"].push_back(Measure(*device, *host, one, options.repeats, seed++));
    if (!report["cases"].back()["right"]) ++wrong;
    Write(report, options.json);
  }
  return wrong == 0 ? 0 : 1;
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
