// What the CUDA device is measured with.
#ifndef SLUICE_BENCH_MICRO_CUDA_CASES_H_
#define SLUICE_BENCH_MICRO_CUDA_CASES_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "device/device.h"
#include "sluice/tensor.h"

namespace sluice {

// What is measured: steps from src to dst, both as the host and as the GPU sees them.
struct Sides {
  const std::byte* src;
  std::byte* dst;
  DeviceKind src_kind;
  DeviceKind dst_kind;
};

// Bytes that are consecutive on both sides.
struct CasePiece {
  int64_t src = 0;  // offsets
  int64_t dst = 0;
  int64_t bytes = 0;
};

struct Case {
  std::string name;
  int64_t src_bytes = 0;  // of memory
  int64_t dst_bytes = 0;
  int64_t read = 0;  // that are counted
  int64_t written = 0;
  DeviceKind src_kind = DeviceKind::kCuda;
  std::function<absl::Status(Device&, const Sides&, bool in_stream_order)> start;
  // The same as pieces of bytes, where other ways to copy a batch of them are measured beside it.
  std::vector<CasePiece> pieces;
};

// `bytes`: of each case's packed side.
std::vector<Case> AllCases(int64_t bytes);

}  // namespace sluice

#endif  // SLUICE_BENCH_MICRO_CUDA_CASES_H_
