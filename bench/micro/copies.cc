// Copies, casts and folds of large tensors against memcpy, in turns: each benchmark gives
// ratios.
//
// Both sides are larger than the cache, and each turn goes on where the last one ended, so that
// nothing is found there. The time counted is the thread's own. Counters, each with the quartiles
// of the rounds: `ratio`, bytes read and written per second over memcpy's; `memcpy_GBps`, bytes
// that memcpy copies. Not a test: nothing is checked here.
#include <benchmark/benchmark.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "device/device.h"
#include "device/fold_rows.h"
#include "device/host_memory.h"
#include "device/stores.h"
#include "device/stream_rows.h"
#include "device/strided_copy.h"
#include "report/spread.h"
#include "sluice/layout.h"
#include "sluice/tensor.h"
#include "tensor/stretch.h"

namespace sluice::bench {
namespace {

constexpr int64_t kMemoryBytes = int64_t{128} << 20;  // of each side
constexpr int64_t kTurnBytes = int64_t{2} << 20;      // of the larger side of one turn
constexpr int64_t kPitches = 8;                       // a row with the gap after it, in row lengths
constexpr int kRounds = 41;

// Tensor memory as Sluice gives it out, all of it touched.
std::byte* Map() {
  static auto* const kMaps = new std::vector<DeviceMemory>();
  absl::StatusOr<DeviceMemory> memory = MapHostMemory(kMemoryBytes, "benchmark memory");
  std::memset(memory->data(), 0x3C, kMemoryBytes);
  kMaps->push_back(*std::move(memory));
  return kMaps->back().data();
}

double ThreadSeconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// A way to carry out number `turn`, from `src` to `dst`.
using Turn = std::function<void(const std::byte* src, std::byte* dst, int64_t turn)>;

// The offset of turn `turn` in memory of which each turn takes `bytes`.
int64_t Offset(int64_t turn, int64_t bytes) { return turn % (kMemoryBytes / bytes) * bytes; }

// Gives memcpy and `measured` their turns on one thread.
struct Series {
  std::vector<double> ratios;
  std::vector<double> rates;  // of memcpy

  // `bytes`: read plus written in one turn, by either.
  void Measure(const Turn& measured, int64_t bytes, const std::byte* src, std::byte* dst) {
    for (int round = 0; round < kRounds; ++round) {
      const int64_t at = Offset(int64_t{2} * round, bytes / 2);
      const double begin = ThreadSeconds();
      std::memcpy(dst + at, src + at, static_cast<size_t>(bytes / 2));
      benchmark::ClobberMemory();
      const double between = ThreadSeconds();
      measured(src, dst, 2 * round + 1);
      benchmark::ClobberMemory();
      const double end = ThreadSeconds();
      ratios.push_back((between - begin) / (end - between));
      rates.push_back(static_cast<double>(bytes) / 2e9 / (between - begin));
    }
  }
};

void Compare(benchmark::State& state, int64_t bytes, const Turn& measured, int64_t threads = 1) {
  static std::vector<std::byte*> sides = {Map(), Map(), Map(), Map()};
  std::vector<Series> series(static_cast<size_t>(threads));
  while (state.KeepRunning()) {
    std::vector<std::thread> others;
    others.reserve(series.size());
    for (size_t i = 1; i < series.size(); ++i) {
      others.emplace_back(
          [&, i] { series[i].Measure(measured, bytes, sides[2 * i], sides[2 * i + 1]); });
    }
    series[0].Measure(measured, bytes, sides[0], sides[1]);
    for (std::thread& other : others) other.join();
  }
  Series all;
  for (const Series& one : series) {
    all.ratios.insert(all.ratios.end(), one.ratios.begin(), one.ratios.end());
    all.rates.insert(all.rates.end(), one.rates.begin(), one.rates.end());
  }
  state.counters["ratio"] = Quantile(all.ratios, 0.5);
  state.counters["ratio_q1"] = Quantile(all.ratios, 0.25);
  state.counters["ratio_q3"] = Quantile(all.ratios, 0.75);
  state.counters["memcpy_GBps"] = Quantile(all.rates, 0.5);
}

// A copy of `rows` x `columns` elements, whose positions are so many bytes apart. A turn takes the
// next `src_bytes` and `dst_bytes`.
struct Matrix {
  DType from = DType::kU8, to = DType::kU8;
  Stretch rows, columns;
  std::array<int64_t, 2> src_strides{}, dst_strides{};
  int64_t src_bytes = kTurnBytes, dst_bytes = kTurnBytes;
  WriteHint stores = WriteHint::kAuto;

  void operator()(const std::byte* src, std::byte* dst, int64_t turn) const {
    StridedCopy copy;
    copy.dims = rows.length > 1 ? 2 : 1;
    const size_t last = static_cast<size_t>(copy.dims) - 1;
    copy.runs[0] = absl::MakeConstSpan(&rows, 1);
    copy.src_strides[0] = src_strides[0];
    copy.dst_strides[0] = dst_strides[0];
    copy.runs[last] = absl::MakeConstSpan(&columns, 1);
    copy.src_strides[last] = src_strides[1];
    copy.dst_strides[last] = dst_strides[1];
    copy.src = src + Offset(turn, src_bytes);
    copy.dst = dst + Offset(turn, dst_bytes);
    copy.src_dtype = from;
    copy.dst_dtype = to;
    copy.end = rows.length * columns.length;
    copy.stores = stores;
    CopyStrided(copy);
  }
};

// Rows of `row` elements one behind the other, or each with a gap after it.
Matrix RowsOf(DType from, DType to, int64_t rows, int64_t row, bool src_gap, bool dst_gap) {
  const int64_t src_row = row * DTypeBytes(from) * (src_gap ? kPitches : 1);
  const int64_t dst_row = row * DTypeBytes(to) * (dst_gap ? kPitches : 1);
  return {.from = from,
          .to = to,
          .rows = {0, 0, rows},
          .columns = {0, 0, row},
          .src_strides = {src_row, DTypeBytes(from)},
          .dst_strides = {dst_row, DTypeBytes(to)},
          .src_bytes = std::max(kTurnBytes, rows * src_row),
          .dst_bytes = std::max(kTurnBytes, rows * dst_row)};
}

WriteHint StoresOf(int64_t streaming) {
  return streaming != 0 ? WriteHint::kStreaming : WriteHint::kPlain;
}

// Rows of `row_bytes`, with plain stores or streaming ones, on this many threads at once. Gaps are
// on the sides that `gaps` says: 0 neither, 1 the source, 2 the destination, 3 both.
void Rows(benchmark::State& state) {
  const int64_t gaps = state.range(1);
  Matrix rows = RowsOf(DType::kU8, DType::kU8, kTurnBytes / state.range(0), state.range(0),
                       (gaps & 1) != 0, (gaps & 2) != 0);
  rows.stores = StoresOf(state.range(2));
  Compare(state, 2 * kTurnBytes, rows, state.range(3));
}
BENCHMARK(Rows)
    ->ArgNames({"row_bytes", "gaps", "streaming", "threads"})
    ->ArgsProduct(
        {{16, 64, 128, 256, 512, 1024, 4096, 16384, 65536, kTurnBytes}, {1, 2, 3}, {0, 1}, {1, 2}})
    ->Iterations(1);

// Whole tensors.
void Cast(benchmark::State& state, DType from, DType to) {
  const int64_t elements = kTurnBytes / std::max(DTypeBytes(from), DTypeBytes(to));
  Matrix cast = RowsOf(from, to, 1, elements, false, false);
  cast.stores = StoresOf(state.range(0));
  Compare(state, elements * (DTypeBytes(from) + DTypeBytes(to)), cast, state.range(1));
}
#define SLUICE_CAST_RATIO(name, from, to)                       \
  BENCHMARK_CAPTURE(Cast, ratio_##name, DType::from, DType::to) \
      ->ArgNames({"streaming", "threads"})                      \
      ->ArgsProduct({{0, 1}, {1, 2}})                           \
      ->Iterations(1)
SLUICE_CAST_RATIO(f32_to_bf16, kF32, kBF16);
SLUICE_CAST_RATIO(f32_to_f16, kF32, kF16);
SLUICE_CAST_RATIO(f32_to_f8e4m3, kF32, kF8E4M3);
SLUICE_CAST_RATIO(f32_to_f8e5m2, kF32, kF8E5M2);
SLUICE_CAST_RATIO(bf16_to_f32, kBF16, kF32);
SLUICE_CAST_RATIO(f16_to_f32, kF16, kF32);
SLUICE_CAST_RATIO(f8e4m3_to_f32, kF8E4M3, kF32);
SLUICE_CAST_RATIO(f8e5m2_to_f32, kF8E5M2, kF32);
#undef SLUICE_CAST_RATIO

// What one writes by hand, for the compiler to make the best of.
void NaiveCastRatio(benchmark::State& state) {
  Compare(state, kTurnBytes / 2 * 3, [](const std::byte* src, std::byte* dst, int64_t turn) {
    src += Offset(turn, kTurnBytes);
    dst += Offset(turn, kTurnBytes);
    for (int64_t i = 0; i < kTurnBytes / 4; ++i) {
      float value;
      std::memcpy(&value, src + i * 4, 4);
      auto bits = std::bit_cast<uint32_t>(value);
      bits = value != value ? bits | 0x00400000 : bits + 0x7FFF + ((bits >> 16) & 1);
      const auto upper = static_cast<uint16_t>(bits >> 16);
      std::memcpy(dst + i * 2, &upper, 2);
    }
  });
}
BENCHMARK(NaiveCastRatio)->Iterations(1);

// The sum of contributions that lie apart. Counts bytes written alone: memcpy of the result, which
// is what a fold saves over adding up elsewhere.
void FoldRatio(benchmark::State& state, DType dtype, int64_t divisor) {
  const auto count = static_cast<size_t>(state.range(0));
  const int64_t apart = kMemoryBytes / kTurnBytes / state.range(0);
  const Turn fold = [&](const std::byte* src, std::byte* dst, int64_t turn) {
    std::array<const std::byte*, 5> sources{};
    for (size_t i = 0; i < count; ++i) {
      sources[i] = src + Offset(turn + static_cast<int64_t>(i) * apart, kTurnBytes);
    }
    RowFold(ReduceOp::kAvg, dtype, divisor)
        .Fold(absl::MakeConstSpan(sources).first(count), dst + Offset(turn, kTurnBytes),
              kTurnBytes / DTypeBytes(dtype), StoresOf(state.range(1)));
    StreamFence();
  };
  Compare(state, 2 * kTurnBytes, fold, state.range(2));
}
#define SLUICE_FOLD_RATIO(name, dtype, divisor)                     \
  BENCHMARK_CAPTURE(FoldRatio, ratio_##name, DType::dtype, divisor) \
      ->ArgNames({"sources", "streaming", "threads"})               \
      ->ArgsProduct({{2, 3, 4, 5}, {0, 1}, {1, 2}})                 \
      ->Iterations(1)
SLUICE_FOLD_RATIO(sum_f32, kF32, 1);
SLUICE_FOLD_RATIO(sum_bf16, kBF16, 1);
SLUICE_FOLD_RATIO(sum_i64, kI64, 1);
SLUICE_FOLD_RATIO(avg_f32, kF32, 2);
#undef SLUICE_FOLD_RATIO

}  // namespace
}  // namespace sluice::bench
