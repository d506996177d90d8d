// Copies, casts and folds of large tensors against memcpy, in turns: each benchmark gives ratios.
//
// Both sides are larger than the cache, and each turn goes on where the last one ended, so that
// nothing is found there. The time counted is the thread's own. Counters, each with the quartiles
// of the rounds: `ratio`, bytes read and written per second over memcpy's; `memcpy_GBps`, bytes
// that memcpy copies. Not a test: nothing is checked here.
#include <benchmark/benchmark.h>
#include <time.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "device/device.h"
#include "device/fold_rows.h"
#include "device/host_memory.h"
#include "device/stores.h"
#include "device/stream_rows.h"
#include "device/strided_copy.h"
#include "sluice/layout.h"
#include "sluice/tensor.h"
#include "tensor/stretch.h"

namespace sluice {
namespace {

constexpr int64_t kMemoryBytes = int64_t{128} << 20;  // of each side
constexpr int64_t kTurnBytes = int64_t{2} << 20;      // that one turn writes
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

double At(std::vector<double> values, double fraction) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(fraction * static_cast<double>(values.size() - 1))];
}

// A way to write kTurnBytes: number `turn`, from `src` to `dst`.
using Turn = std::function<void(const std::byte* src, std::byte* dst, int64_t turn)>;

struct Ways {
  Turn memcpy_of_as_many;
  Turn measured;
  int64_t bytes;  // read plus written in one turn, by either
};

// Gives both ways their turns on one thread.
struct Series {
  std::vector<double> ratios;
  std::vector<double> rates;  // of memcpy

  void Measure(const Ways& ways, const std::byte* src, std::byte* dst) {
    for (int round = 0; round < kRounds; ++round) {
      const double begin = ThreadSeconds();
      ways.memcpy_of_as_many(src, dst, 2 * round);
      const double between = ThreadSeconds();
      ways.measured(src, dst, 2 * round + 1);
      const double end = ThreadSeconds();
      ratios.push_back((between - begin) / (end - between));
      rates.push_back(static_cast<double>(ways.bytes) / 2e9 / (between - begin));
    }
  }
};

void Compare(benchmark::State& state, const Ways& ways, int64_t threads) {
  static std::vector<std::byte*> sides = {Map(), Map(), Map(), Map()};
  std::vector<Series> series(static_cast<size_t>(threads));
  while (state.KeepRunning()) {
    std::vector<std::thread> others;
    for (size_t i = 1; i < series.size(); ++i) {
      others.emplace_back([&, i] { series[i].Measure(ways, sides[2 * i], sides[2 * i + 1]); });
    }
    series[0].Measure(ways, sides[0], sides[1]);
    for (std::thread& other : others) other.join();
  }
  Series all;
  for (const Series& one : series) {
    all.ratios.insert(all.ratios.end(), one.ratios.begin(), one.ratios.end());
    all.rates.insert(all.rates.end(), one.rates.begin(), one.rates.end());
  }
  state.counters["ratio"] = At(all.ratios, 0.5);
  state.counters["ratio_q1"] = At(all.ratios, 0.25);
  state.counters["ratio_q3"] = At(all.ratios, 0.75);
  state.counters["memcpy_GBps"] = At(all.rates, 0.5);
}

// The offset of turn `turn` in memory of which each turn takes `bytes`.
int64_t Offset(int64_t turn, int64_t bytes) { return turn % (kMemoryBytes / bytes) * bytes; }

Turn Memcpy(int64_t bytes) {
  return [bytes](const std::byte* src, std::byte* dst, int64_t turn) {
    std::memcpy(dst + Offset(turn, bytes), src + Offset(turn, bytes), static_cast<size_t>(bytes));
    benchmark::ClobberMemory();
  };
}

// Rows of `row_bytes`, with plain stores or streaming ones, on this many threads at once. Gaps are
// on the sides that `gaps` says: 0 neither, 1 the source, 2 the destination, 3 both.
void Rows(benchmark::State& state) {
  const int64_t row_bytes = state.range(0);
  const auto pitch = [&](int64_t side) {
    return (state.range(1) & side) != 0 ? row_bytes * kPitches : row_bytes;
  };
  const Stretch rows = {0, 0, kTurnBytes / row_bytes};
  const Stretch columns = {0, 0, row_bytes};
  StridedCopy copy;
  copy.dims = 2;
  copy.runs[0] = absl::MakeConstSpan(&rows, 1);
  copy.runs[1] = absl::MakeConstSpan(&columns, 1);
  copy.src_strides = {pitch(1), 1};
  copy.dst_strides = {pitch(2), 1};
  copy.end = kTurnBytes;
  copy.stores = state.range(2) != 0 ? Stores::kStreaming : Stores::kPlain;
  const Turn strided = [&copy, &rows](const std::byte* src, std::byte* dst, int64_t turn) {
    StridedCopy part = copy;
    part.src = src + Offset(turn, rows.length * copy.src_strides[0]);
    part.dst = dst + Offset(turn, rows.length * copy.dst_strides[0]);
    CopyStrided(part);
    benchmark::ClobberMemory();
  };
  Compare(state, {Memcpy(kTurnBytes), strided, 2 * kTurnBytes}, state.range(3));
}
BENCHMARK(Rows)
    ->ArgNames({"row_bytes", "gaps", "streaming", "threads"})
    ->ArgsProduct(
        {{16, 64, 128, 256, 512, 1024, 4096, 16384, 65536, kTurnBytes}, {1, 2, 3}, {0, 1}, {1, 2}})
    ->Iterations(1);

// Of as many bytes read and written as memcpy: whole tensors.
Ways CastWays(int64_t src_bytes, int64_t dst_bytes, Turn cast) {
  const int64_t elements = kTurnBytes / std::max(src_bytes, dst_bytes);
  const int64_t bytes = elements * (src_bytes + dst_bytes);
  return {Memcpy(bytes / 2), std::move(cast), bytes};
}

void Cast(benchmark::State& state, DType from, DType to) {
  const int64_t src_bytes = DTypeBytes(from);
  const int64_t dst_bytes = DTypeBytes(to);
  const Stretch run = {0, 0, kTurnBytes / std::max(src_bytes, dst_bytes)};
  const Turn cast = [&](const std::byte* src, std::byte* dst, int64_t turn) {
    StridedCopy copy;
    copy.runs[0] = absl::MakeConstSpan(&run, 1);
    copy.src_dtype = from;
    copy.dst_dtype = to;
    copy.src_strides[0] = src_bytes;
    copy.dst_strides[0] = dst_bytes;
    copy.src = src + Offset(turn, kTurnBytes);
    copy.dst = dst + Offset(turn, kTurnBytes);
    copy.end = run.length;
    copy.stores = state.range(0) != 0 ? Stores::kStreaming : Stores::kPlain;
    CopyStrided(copy);
    benchmark::ClobberMemory();
  };
  Compare(state, CastWays(src_bytes, dst_bytes, cast), state.range(1));
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
  const Turn cast = [](const std::byte* src, std::byte* dst, int64_t turn) {
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
    benchmark::ClobberMemory();
  };
  Compare(state, CastWays(4, 2, cast), 1);
}
BENCHMARK(NaiveCastRatio)->Iterations(1);

// The sum of contributions that lie apart. Counts bytes written alone: memcpy of the result, which
// is what a fold saves over adding up elsewhere.
void FoldRatio(benchmark::State& state, DType dtype, int64_t divisor) {
  const Stores stores = state.range(1) != 0 ? Stores::kStreaming : Stores::kPlain;
  std::vector<const std::byte*> sources(static_cast<size_t>(state.range(0)));
  const Turn fold = [&](const std::byte* src, std::byte* dst, int64_t turn) {
    const int64_t apart = kMemoryBytes / kTurnBytes / state.range(0);
    for (size_t i = 0; i < sources.size(); ++i) {
      sources[i] = src + Offset(turn + static_cast<int64_t>(i) * apart, kTurnBytes);
    }
    RowFold(ReduceOp::kAvg, dtype, divisor)
        .Fold(sources, dst + Offset(turn, kTurnBytes), kTurnBytes / DTypeBytes(dtype), stores);
    StreamFence();
    benchmark::ClobberMemory();
  };
  Compare(state, {Memcpy(kTurnBytes), fold, 2 * kTurnBytes}, state.range(2));
}
#define SLUICE_FOLD_RATIO(name, dtype, divisor)                     \
  BENCHMARK_CAPTURE(FoldRatio, ratio_##name, DType::dtype, divisor) \
      ->ArgNames({"sources", "streaming", "threads"})               \
      ->ArgsProduct({{2, 3, 5}, {0, 1}, {1, 2}})                    \
      ->Iterations(1)
SLUICE_FOLD_RATIO(sum_f32, kF32, 1);
SLUICE_FOLD_RATIO(sum_bf16, kBF16, 1);
SLUICE_FOLD_RATIO(sum_i64, kI64, 1);
SLUICE_FOLD_RATIO(avg_f32, kF32, 2);
#undef SLUICE_FOLD_RATIO

}  // namespace
}  // namespace sluice
