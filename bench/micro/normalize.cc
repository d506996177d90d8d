// Images that are normalized, and a memcpy of as many bytes in the same run.
//
// Rates are of bytes read plus bytes written. Sources and destinations lie in a ring of buffers, as
// slots do, so that small ones are not in the first caches. Not a test: nothing is checked here.
#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "device/normalization.h"
#include "sluice/tensor.h"

namespace sluice {
namespace {

constexpr int64_t kRingBytes = int64_t{64} << 20;

// Times `step`, which takes a source and a destination of `buffer_bytes` and moves `bytes` in all.
// Buffers come one after the other, each in a ring of kRingBytes.
template <typename Step>
void Time(benchmark::State& state, int64_t buffer_bytes, int64_t bytes, Step step) {
  static auto* const kRings = new std::vector<std::vector<std::byte>>(
      2, std::vector<std::byte>(kRingBytes, std::byte{0x3C}));
  int64_t at = 0;
  while (state.KeepRunning()) {
    step((*kRings)[0].data() + at, (*kRings)[1].data() + at);
    benchmark::ClobberMemory();
    at = at + 2 * buffer_bytes <= kRingBytes ? at + buffer_bytes : 0;
  }
  state.SetBytesProcessed(state.iterations() * bytes);
}

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
  Time(state, how.elements * DTypeBytes(to), how.elements * (1 + DTypeBytes(to)),
       [&](const std::byte* src, std::byte* dst) {
         how.src = src;
         how.dst = dst;
         Normalize(how);
       });
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

}  // namespace
}  // namespace sluice
