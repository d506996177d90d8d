// Casts and reductions, against memcpy of as many bytes read and written in the same run.
//
// Rates are of bytes read plus bytes written. Not a test: nothing is checked here.
#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "absl/types/span.h"
#include "device/reduction.h"
#include "device/strided_copy.h"
#include "sluice/layout.h"
#include "sluice/tensor.h"
#include "tensor/stretch.h"

namespace sluice {
namespace {

constexpr int64_t kBlocks = 8;
constexpr int64_t kBlockElements = int64_t{2} << 20;
constexpr int64_t kElements = kBlocks * kBlockElements;
constexpr int64_t kElementBytesMax = 8;

// A tensor of kElements elements of any type, and a bucket for one block of it.
std::vector<std::byte>& Tensor() {
  static auto* const kTensor =
      new std::vector<std::byte>(kElements * kElementBytesMax, std::byte{0x3C});
  return *kTensor;
}

std::vector<std::byte>& Bucket() {
  static auto* const kBucket =
      new std::vector<std::byte>(kBlockElements * kElementBytesMax, std::byte{0x3C});
  return *kBucket;
}

void SetRate(benchmark::State& state, int64_t bytes_read_and_written) {
  state.SetBytesProcessed(state.iterations() * bytes_read_and_written);
}

// One block after the other through the same bucket, `element_bytes` read and written together.
void MemcpyReadWrite(benchmark::State& state) {
  const int64_t block_bytes = kBlockElements * state.range(0) / 2;
  while (state.KeepRunning()) {
    for (int64_t block = 0; block < kBlocks; ++block) {
      std::memcpy(Bucket().data(), Tensor().data() + block * block_bytes,
                  static_cast<size_t>(block_bytes));
      benchmark::ClobberMemory();
    }
  }
  SetRate(state, kElements * state.range(0));
}
BENCHMARK(MemcpyReadWrite)
    ->ArgName("bytes_per_element")
    ->Arg(3)
    ->Arg(6)
    ->Arg(8)
    ->Arg(12)
    ->Unit(benchmark::kMillisecond);

// Column blocks of an f32 matrix, whose rows in a block have `row_bytes`; the source skips 7/8.
void PackF32ToBF16(benchmark::State& state) {
  const int64_t row_bytes = state.range(0);
  const int64_t row_elements = row_bytes / 4;
  const Stretch rows = {0, 0, kBlockElements / row_elements};
  const Stretch columns = {0, 0, row_elements};
  StridedCopy copy;
  copy.dims = 2;
  copy.runs[0] = absl::MakeConstSpan(&rows, 1);
  copy.runs[1] = absl::MakeConstSpan(&columns, 1);
  copy.src_dtype = DType::kF32;
  copy.dst_dtype = DType::kBF16;
  copy.src_strides = {row_bytes * kBlocks, 4};
  copy.dst_strides = {row_elements * 2, 2};
  copy.dst = Bucket().data();
  copy.end = kBlockElements;
  while (state.KeepRunning()) {
    for (int64_t block = 0; block < kBlocks; ++block) {
      copy.src = Tensor().data() + block * row_bytes;
      CopyStrided(copy);
      benchmark::ClobberMemory();
    }
  }
  SetRate(state, kElements * 6);
}
BENCHMARK(PackF32ToBF16)
    ->ArgName("row_bytes")
    ->RangeMultiplier(4)
    ->Range(64, kBlockElements * 4)
    ->Unit(benchmark::kMillisecond);

// Whole blocks, without gaps.
void Cast(benchmark::State& state, DType from, DType to) {
  const Stretch run = {0, 0, kBlockElements};
  StridedCopy copy;
  copy.runs[0] = absl::MakeConstSpan(&run, 1);
  copy.src_dtype = from;
  copy.dst_dtype = to;
  copy.src_strides[0] = DTypeBytes(from);
  copy.dst_strides[0] = DTypeBytes(to);
  copy.dst = Bucket().data();
  copy.end = kBlockElements;
  while (state.KeepRunning()) {
    for (int64_t block = 0; block < kBlocks; ++block) {
      copy.src = Tensor().data() + block * kBlockElements * DTypeBytes(from);
      CopyStrided(copy);
      benchmark::ClobberMemory();
    }
  }
  SetRate(state, kElements * (DTypeBytes(from) + DTypeBytes(to)));
}
#define SLUICE_CAST_BENCHMARK(name, from, to) \
  BENCHMARK_CAPTURE(Cast, name, DType::from, DType::to)->Unit(benchmark::kMillisecond)
SLUICE_CAST_BENCHMARK(f32_to_bf16, kF32, kBF16);
SLUICE_CAST_BENCHMARK(f32_to_f16, kF32, kF16);
SLUICE_CAST_BENCHMARK(f32_to_f8e4m3, kF32, kF8E4M3);
SLUICE_CAST_BENCHMARK(f32_to_f8e5m2, kF32, kF8E5M2);
SLUICE_CAST_BENCHMARK(f32_to_f64, kF32, kF64);
SLUICE_CAST_BENCHMARK(bf16_to_f32, kBF16, kF32);
SLUICE_CAST_BENCHMARK(f16_to_f32, kF16, kF32);
SLUICE_CAST_BENCHMARK(f8e4m3_to_f32, kF8E4M3, kF32);
SLUICE_CAST_BENCHMARK(f8e5m2_to_f32, kF8E5M2, kF32);
SLUICE_CAST_BENCHMARK(f64_to_f32, kF64, kF32);
SLUICE_CAST_BENCHMARK(f64_to_bf16, kF64, kBF16);
SLUICE_CAST_BENCHMARK(bf16_to_f16, kBF16, kF16);
SLUICE_CAST_BENCHMARK(bf16_to_f8e4m3, kBF16, kF8E4M3);
#undef SLUICE_CAST_BENCHMARK

// A square f32 matrix, seen transposed, into bf16.
void TransposeF32ToBF16(benchmark::State& state) {
  constexpr int64_t kSide = 1024;
  const Stretch run = {0, 0, kSide};
  StridedCopy copy;
  copy.dims = 2;
  copy.runs[0] = copy.runs[1] = absl::MakeConstSpan(&run, 1);
  copy.src_dtype = DType::kF32;
  copy.dst_dtype = DType::kBF16;
  copy.src_strides = {4, 4 * kSide};
  copy.dst_strides = {2 * kSide, 2};
  copy.src = Tensor().data();
  copy.dst = Bucket().data();
  copy.end = kSide * kSide;
  while (state.KeepRunning()) {
    CopyStrided(copy);
    benchmark::ClobberMemory();
  }
  SetRate(state, kSide * kSide * 6);
}
BENCHMARK(TransposeF32ToBF16)->Unit(benchmark::kMillisecond);

// Adds one block after the other to a bucket: two reads and one write.
void Sum(benchmark::State& state, DType dtype, int64_t divisor) {
  const int64_t bytes = DTypeBytes(dtype);
  while (state.KeepRunning()) {
    for (int64_t block = 0; block < kBlocks; ++block) {
      Reduce({ReduceOp::kSum, dtype, Tensor().data() + block * kBlockElements * bytes,
              Bucket().data(), kBlockElements, divisor});
      benchmark::ClobberMemory();
    }
  }
  SetRate(state, kElements * bytes * 3);
}
#define SLUICE_SUM_BENCHMARK(name, dtype, divisor) \
  BENCHMARK_CAPTURE(Sum, name, DType::dtype, divisor)->Unit(benchmark::kMillisecond)
SLUICE_SUM_BENCHMARK(f64, kF64, 1);
SLUICE_SUM_BENCHMARK(f32, kF32, 1);
SLUICE_SUM_BENCHMARK(f32_avg, kF32, 4);
SLUICE_SUM_BENCHMARK(bf16, kBF16, 1);
SLUICE_SUM_BENCHMARK(bf16_avg, kBF16, 4);
SLUICE_SUM_BENCHMARK(f16, kF16, 1);
SLUICE_SUM_BENCHMARK(f8e4m3, kF8E4M3, 1);
SLUICE_SUM_BENCHMARK(i32, kI32, 1);
#undef SLUICE_SUM_BENCHMARK

// What a small cast costs beside its bytes.
void SmallCast(benchmark::State& state) {
  const Stretch run = {0, 0, 64};
  StridedCopy copy;
  copy.runs[0] = absl::MakeConstSpan(&run, 1);
  copy.src_dtype = DType::kF32;
  copy.dst_dtype = DType::kBF16;
  copy.src_strides[0] = 4;
  copy.dst_strides[0] = 2;
  copy.src = Tensor().data();
  copy.dst = Bucket().data();
  copy.end = 64;
  while (state.KeepRunning()) {
    CopyStrided(copy);
    benchmark::ClobberMemory();
  }
  SetRate(state, int64_t{64} * 6);
}
BENCHMARK(SmallCast);

}  // namespace
}  // namespace sluice
