// Whole buffers that are normalized, against memcpy and plain loops in the same run.
//
// Rates are of bytes read plus bytes written, beside a memcpy of as many. Sources
// and destinations lie in a ring of buffers, as slots do, so that small ones are not in the first
// caches. Not a test: nothing is checked here.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "device/normalization.h"
#include "sluice/tensor.h"

namespace sluice {
namespace {

constexpr int64_t kRingBytes = int64_t{64} << 20;

// Two rings of buffers, each of kRingBytes, whose turns come one after the other.
class Ring {
 public:
  // The memory is there before anything is timed.
  explicit Ring(int64_t buffer_bytes) : buffer_bytes_(buffer_bytes) { Memory(0); }

  void Next() { at_ = at_ + 2 * buffer_bytes_ <= kRingBytes ? at_ + buffer_bytes_ : 0; }
  const std::byte* src() const { return Memory(0).data() + at_; }
  std::byte* dst() const { return Memory(1).data() + at_; }

 private:
  static std::vector<std::byte>& Memory(size_t side) {
    static auto* const kMemory = new std::vector<std::vector<std::byte>>(
        2, std::vector<std::byte>(kRingBytes, std::byte{0x3C}));
    return (*kMemory)[side];
  }

  int64_t buffer_bytes_;
  int64_t at_ = 0;
};

// Times `step`, which takes a source and a destination of `buffer_bytes` and moves `bytes` in all.
template <typename Step>
void Time(benchmark::State& state, int64_t buffer_bytes, int64_t bytes, Step step) {
  Ring ring(buffer_bytes);
  while (state.KeepRunning()) {
    step(ring.src(), ring.dst());
    benchmark::ClobberMemory();
    ring.Next();
  }
  state.SetBytesProcessed(state.iterations() * bytes);
}

// `range(0)` KiB read and as many written.
void WholeMemcpy(benchmark::State& state) {
  const int64_t bytes = state.range(0) << 10;
  Time(state, bytes, 2 * bytes, [&](const std::byte* src, std::byte* dst) {
    std::memcpy(dst, src, static_cast<size_t>(bytes));
  });
}
BENCHMARK(WholeMemcpy)->ArgName("KiB")->RangeMultiplier(4)->Range(256, 16384);

void TimeNormalize(benchmark::State& state, int64_t buffer_bytes, int64_t bytes,
                   Normalization how) {
  Time(state, buffer_bytes, bytes, [&](const std::byte* src, std::byte* dst) {
    how.src = src;
    how.dst = dst;
    Normalize(how);
  });
}

// Of sources of `range(0)` KiB.
void Normalized(benchmark::State& state, DType from, DType to) {
  const int64_t elements = (state.range(0) << 10) / DTypeBytes(from);
  Normalization how = {from, to, 1.0f / 255, -0.5f};
  how.elements = elements;
  const int64_t larger = std::max(DTypeBytes(from), DTypeBytes(to));
  TimeNormalize(state, elements * larger, elements * (DTypeBytes(from) + DTypeBytes(to)), how);
}

// What one writes by hand; bf16 without NaN, and no f16, which the language does not know.
template <typename From, typename To>
void Plain(benchmark::State& state) {
  const int64_t elements = (state.range(0) << 10) / static_cast<int64_t>(sizeof(From));
  const auto larger = static_cast<int64_t>(std::max(sizeof(From), sizeof(To)));
  const int64_t both = elements * static_cast<int64_t>(sizeof(From) + sizeof(To));
  Time(state, elements * larger, both, [&](const std::byte* from, std::byte* to) {
    const auto* src = reinterpret_cast<const From*>(from);
    auto* dst = reinterpret_cast<To*>(to);
    for (int64_t i = 0; i < elements; ++i) {
      const float value = static_cast<float>(src[i]) * (1.0f / 255) - 0.5f;
      if constexpr (std::is_same_v<To, float>) {
        dst[i] = value;
      } else {
        const auto bits = std::bit_cast<uint32_t>(value);
        dst[i] = static_cast<uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
      }
    }
  });
}
#define SLUICE_PLAIN_BENCHMARK(from, to) \
  BENCHMARK_TEMPLATE(Plain, from, to)->ArgName("KiB")->RangeMultiplier(8)->Range(256, 16384)
SLUICE_PLAIN_BENCHMARK(uint8_t, float);
SLUICE_PLAIN_BENCHMARK(uint8_t, uint16_t);
SLUICE_PLAIN_BENCHMARK(int16_t, float);
SLUICE_PLAIN_BENCHMARK(float, uint16_t);
SLUICE_PLAIN_BENCHMARK(float, float);
#undef SLUICE_PLAIN_BENCHMARK

// Images of 224 x 224 pixels, u8 of three channels side by side, each channel with a scale and a
// bias of its own: what data loaders do to them. Planar: the channels become planes.
constexpr int64_t kImagePixels = int64_t{224} * 224;
constexpr int64_t kImageChannels = 3;

void NormalizedImage(benchmark::State& state, DType to, bool planar) {
  ChannelFactors factors = {};
  for (size_t c = 0; c < kImageChannels; ++c) {
    factors.scale[c] = 0.017F + 0.0003F * static_cast<float>(c);
    factors.bias[c] = -2.1F + 0.1F * static_cast<float>(c);
  }
  Normalization how = {DType::kU8, to};
  how.elements = kImagePixels * kImageChannels;
  how.pixels = {
      .channels = kImageChannels, .width = 224, .rows = 224, .columns = 224, .planar = planar};
  how.factors = &factors;
  TimeNormalize(state, how.elements * DTypeBytes(to), how.elements * (1 + DTypeBytes(to)), how);
}

// A memcpy that reads and writes as many bytes together as an image's normalization to elements of
// `range(0)` bytes.
void ImageMemcpy(benchmark::State& state) {
  const int64_t both = kImagePixels * kImageChannels * (1 + state.range(0));
  Time(state, both / 2, both, [&](const std::byte* src, std::byte* dst) {
    std::memcpy(dst, src, static_cast<size_t>(both / 2));
  });
}
BENCHMARK(ImageMemcpy)->ArgName("bytes_of_element")->Arg(2)->Arg(4);
BENCHMARK_CAPTURE(NormalizedImage, u8_nhwc_to_f32_nchw, DType::kF32, true);
BENCHMARK_CAPTURE(NormalizedImage, u8_nhwc_to_f16_nchw, DType::kF16, true);
BENCHMARK_CAPTURE(NormalizedImage, u8_nhwc_to_bf16_nchw, DType::kBF16, true);
BENCHMARK_CAPTURE(NormalizedImage, u8_nhwc_to_f32_nhwc, DType::kF32, false);
BENCHMARK_CAPTURE(NormalizedImage, u8_nhwc_to_f16_nhwc, DType::kF16, false);
BENCHMARK_CAPTURE(NormalizedImage, u8_nhwc_to_bf16_nhwc, DType::kBF16, false);

#define SLUICE_NORMALIZE_BENCHMARK(from_name, from, to_name, to)                  \
  BENCHMARK_CAPTURE(Normalized, from_name##_to_##to_name, DType::from, DType::to) \
      ->ArgName("KiB")                                                            \
      ->RangeMultiplier(8)                                                        \
      ->Range(256, 16384)
#define SLUICE_NORMALIZE_BENCHMARKS(name, from)        \
  SLUICE_NORMALIZE_BENCHMARK(name, from, f16, kF16);   \
  SLUICE_NORMALIZE_BENCHMARK(name, from, bf16, kBF16); \
  SLUICE_NORMALIZE_BENCHMARK(name, from, f32, kF32)
SLUICE_NORMALIZE_BENCHMARKS(u8, kU8);
SLUICE_NORMALIZE_BENCHMARKS(i16, kI16);
SLUICE_NORMALIZE_BENCHMARKS(f16, kF16);
SLUICE_NORMALIZE_BENCHMARKS(bf16, kBF16);
SLUICE_NORMALIZE_BENCHMARKS(f32, kF32);
#undef SLUICE_NORMALIZE_BENCHMARKS
#undef SLUICE_NORMALIZE_BENCHMARK

}  // namespace
}  // namespace sluice
