// Packs a matrix into buckets, against memcpy of the same bytes in the same run.
//
// Rates are of bytes copied (once, not read plus written). Not a test: nothing is checked here.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "device/strided_copy.h"
#include "tensor/stretch.h"

namespace sluice {
namespace {

constexpr int64_t kMatrixBytes = int64_t{64} << 20;
constexpr int64_t kBlocks = 8;  // column blocks of the matrix, each filling the bucket
constexpr int64_t kBucketBytes = kMatrixBytes / kBlocks;

std::vector<std::byte>& Matrix() {
  static auto* const kMatrix = new std::vector<std::byte>(kMatrixBytes, std::byte{1});
  return *kMatrix;
}

std::vector<std::byte>& Bucket() {
  static auto* const kBucket = new std::vector<std::byte>(kBucketBytes, std::byte{2});
  return *kBucket;
}

void SetRate(benchmark::State& state, int64_t bytes) {
  state.SetBytesProcessed(state.iterations() * bytes);
}

void Memcpy(benchmark::State& state) {
  while (state.KeepRunning()) {
    for (int64_t block = 0; block < kBlocks; ++block) {
      std::memcpy(Bucket().data(), Matrix().data() + block * kBucketBytes, kBucketBytes);
      benchmark::ClobberMemory();
    }
  }
  SetRate(state, kMatrixBytes);
}
BENCHMARK(Memcpy)->Unit(benchmark::kMillisecond);

// Column blocks, each with rows of `row_bytes`: the source skips 7/8 of every row of the matrix.
StridedCopy ColumnBlock(const Stretch& rows, const Stretch& columns, int64_t row_bytes) {
  StridedCopy copy;
  copy.dims = 2;
  copy.runs[0] = absl::MakeConstSpan(&rows, 1);
  copy.runs[1] = absl::MakeConstSpan(&columns, 1);
  copy.src_dtype = copy.dst_dtype = row_bytes < 4 ? DType::kBF16 : DType::kF32;
  const int64_t element_bytes = DTypeBytes(copy.src_dtype);
  copy.src_strides = {row_bytes * kBlocks, element_bytes};
  copy.dst_strides = {row_bytes, element_bytes};
  copy.src = Matrix().data();
  copy.dst = Bucket().data();
  copy.end = kBucketBytes / element_bytes;
  return copy;
}

void PackColumns(benchmark::State& state) {
  const int64_t row_bytes = state.range(0);
  const Stretch rows = {0, 0, kBucketBytes / row_bytes};
  const Stretch columns = {0, 0, row_bytes / std::min(row_bytes, int64_t{4})};
  StridedCopy copy = ColumnBlock(rows, columns, row_bytes);
  while (state.KeepRunning()) {
    for (int64_t block = 0; block < kBlocks; ++block) {
      copy.src = Matrix().data() + block * row_bytes;
      CopyStrided(copy);
      benchmark::ClobberMemory();
    }
  }
  SetRate(state, kMatrixBytes);
}
BENCHMARK(PackColumns)->RangeMultiplier(2)->Range(2, kBucketBytes)->Unit(benchmark::kMillisecond);

void UnpackColumns(benchmark::State& state) {
  const int64_t row_bytes = state.range(0);
  const Stretch rows = {0, 0, kBucketBytes / row_bytes};
  const Stretch columns = {0, 0, row_bytes / std::min(row_bytes, int64_t{4})};
  StridedCopy copy = ColumnBlock(rows, columns, row_bytes);
  std::swap(copy.src_strides, copy.dst_strides);
  copy.src = Bucket().data();
  while (state.KeepRunning()) {
    for (int64_t block = 0; block < kBlocks; ++block) {
      copy.dst = Matrix().data() + block * row_bytes;
      CopyStrided(copy);
      benchmark::ClobberMemory();
    }
  }
  SetRate(state, kMatrixBytes);
}
BENCHMARK(UnpackColumns)
    ->RangeMultiplier(8)
    ->Range(16, kBucketBytes)
    ->Unit(benchmark::kMillisecond);

// What one writes by hand for rows whose length the compiler knows.
template <int64_t kRowBytes>
void HandWrittenColumns(benchmark::State& state) {
  while (state.KeepRunning()) {
    for (int64_t block = 0; block < kBlocks; ++block) {
      const std::byte* src = Matrix().data() + block * kRowBytes;
      std::byte* dst = Bucket().data();
      for (int64_t row = 0; row < kBucketBytes / kRowBytes; ++row) {
        std::memcpy(dst + row * kRowBytes, src + row * kRowBytes * kBlocks, kRowBytes);
      }
      benchmark::ClobberMemory();
    }
  }
  SetRate(state, kMatrixBytes);
}
BENCHMARK(HandWrittenColumns<16>)->Unit(benchmark::kMillisecond);
BENCHMARK(HandWrittenColumns<64>)->Unit(benchmark::kMillisecond);
BENCHMARK(HandWrittenColumns<256>)->Unit(benchmark::kMillisecond);
BENCHMARK(HandWrittenColumns<2048>)->Unit(benchmark::kMillisecond);

// A square matrix of elements of one size, as large as a bucket, seen transposed.
void Transpose(benchmark::State& state) {
  constexpr std::array<DType, 4> kTypes = {DType::kU8, DType::kF16, DType::kF32, DType::kF64};
  const DType dtype = kTypes[static_cast<size_t>(state.range(0))];
  const int64_t element_bytes = DTypeBytes(dtype);
  int64_t side = 1;
  while (side * side * 4 * element_bytes <= kBucketBytes) side *= 2;
  const Stretch run = {0, 0, side};
  StridedCopy copy;
  copy.dims = 2;
  copy.runs[0] = copy.runs[1] = absl::MakeConstSpan(&run, 1);
  copy.src_dtype = copy.dst_dtype = dtype;
  copy.src_strides = {element_bytes, element_bytes * side};
  copy.dst_strides = {element_bytes * side, element_bytes};
  copy.src = Matrix().data();
  copy.dst = Bucket().data();
  copy.end = side * side;
  if (state.range(1) != 0) std::swap(copy.src_strides, copy.dst_strides);
  while (state.KeepRunning()) {
    CopyStrided(copy);
    benchmark::ClobberMemory();
  }
  SetRate(state, side * side * element_bytes);
}
BENCHMARK(Transpose)
    ->ArgNames({"log2_element_bytes", "unpack"})
    ->ArgsProduct({{0, 1, 2, 3}, {0, 1}})
    ->Unit(benchmark::kMillisecond);

// What a copy costs beside its bytes.
void SmallCopy(benchmark::State& state) {
  const Stretch rows = {0, 0, 4};
  const Stretch columns = {0, 0, 16};
  StridedCopy copy = ColumnBlock(rows, columns, 64);
  copy.end = 64;
  while (state.KeepRunning()) {
    CopyStrided(copy);
    benchmark::ClobberMemory();
  }
  SetRate(state, 256);
}
BENCHMARK(SmallCopy);

}  // namespace
}  // namespace sluice

BENCHMARK_MAIN();
