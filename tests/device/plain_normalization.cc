// Doubles, and one element after the other.
#include "device/plain_normalization.h"

#include <array>
#include <bit>
#include <cmath>
#include <random>

#include "device/float_oracle.h"
#include "sluice/tensor.h"

namespace sluice {
namespace {

constexpr uint64_t kOneNaN = 0x7FC00000;  // of f32: quiet, positive, without payload

// The element as f32, which holds it exactly.
uint64_t WidenedCode(DType from, uint64_t code) {
  if (from == DType::kU8) return std::bit_cast<uint32_t>(static_cast<float>(code));
  if (from == DType::kI16) {
    return std::bit_cast<uint32_t>(static_cast<float>(static_cast<int16_t>(code)));
  }
  return CastCode(from, DType::kF32, code);
}

}  // namespace

// The sum and the product of two floats, rounded once: doubles hold the one exactly and the other
// well enough.
uint64_t NormalizedCode(const Normalization& how, uint64_t code) {
  const uint64_t wide = WidenedCode(how.src_dtype, code);
  const double value = Decode(DType::kF32, wide);
  // CastCode has made it quiet, except where there was nothing to cast.
  if (std::isnan(value)) return CastCode(DType::kF32, how.dst_dtype, wide | 0x00400000);
  const auto product = static_cast<float>(value * double{how.scale});
  const auto sum = static_cast<float>(double{product} + double{how.bias});
  const uint64_t result = std::isnan(sum) ? kOneNaN : std::bit_cast<uint32_t>(sum);
  return CastCode(DType::kF32, how.dst_dtype, result);
}

void PlainNormalize(const Normalization& how) {
  const PixelGrid& grid = how.pixels;
  const int64_t src_bytes = DTypeBytes(how.src_dtype);
  const int64_t dst_bytes = DTypeBytes(how.dst_dtype);
  for (int64_t i = 0; i < how.elements; ++i) {
    Normalization one = how;
    int64_t to = i;
    if (grid.channels > 0) {
      const int64_t channel = (how.first + i) % grid.channels;
      const int64_t x = (how.first + i) / grid.channels % grid.width - grid.left;
      const int64_t y = (how.first + i) / grid.channels / grid.width - grid.top;
      if (x < 0 || x >= grid.columns || y < 0 || y >= grid.rows) continue;
      to = grid.planar ? (channel * grid.rows + y) * grid.columns + x
                       : (y * grid.columns + x) * grid.channels + channel;
      if (how.factors != nullptr) {
        one.scale = how.factors->scale[static_cast<size_t>(channel)];
        one.bias = how.factors->bias[static_cast<size_t>(channel)];
      }
    }
    const uint64_t code = LoadCode(how.src + i * src_bytes, how.src_dtype);
    StoreCode(NormalizedCode(one, code), how.dst_dtype, how.dst + to * dst_bytes);
  }
}

RandomPixels::RandomPixels(uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&random](int64_t end) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(end));
  };
  constexpr std::array<DType, 5> kFrom = {DType::kU8, DType::kI16, DType::kF16, DType::kBF16,
                                          DType::kF32};
  constexpr std::array<DType, 3> kTo = {DType::kF16, DType::kBF16, DType::kF32};
  how.src_dtype = kFrom[seed % 5];
  how.dst_dtype = kTo[seed / 5 % 3];
  PixelGrid& grid = how.pixels;
  grid.channels = random() % 2 == 0 ? 1 + below(4) : 1 + below(kMaxChannels);
  grid.width = 1 + below(random() % 4 == 0 ? 600 : 40);
  const int64_t height = 1 + below(12);
  const bool crops = random() % 3 != 0;
  grid.rows = crops ? 1 + below(height) : height;
  grid.columns = crops && random() % 3 != 0 ? 1 + below(grid.width) : grid.width;
  grid.top = below(height - grid.rows + 1);
  grid.left = below(grid.width - grid.columns + 1);
  grid.planar = random() % 2 == 0;
  const int64_t item = height * grid.width * grid.channels;
  if (random() % 2 == 0) {
    how.elements = item;
  } else {
    how.first = below(item);
    how.elements = below(item - how.first + 1);
  }
  const bool odd = random() % 4 == 0;
  const auto factor = [&] {
    if (odd) return std::bit_cast<float>(static_cast<uint32_t>(random()));
    return static_cast<float>(below(2000) - 1000) / 256;
  };
  how.scale = factor();
  how.bias = factor();
  for (float& scale : factors.scale) scale = factor();
  for (float& bias : factors.bias) bias = factor();
  if (random() % 3 != 0) how.factors = &factors;
  const bool shifts = random() % 2 == 0;
  const int64_t src_offset = shifts ? below(16) : 0;
  dst_offset = shifts ? below(16) : 0;
  src_memory.resize(static_cast<size_t>(src_offset + how.elements * DTypeBytes(how.src_dtype)));
  for (std::byte& byte : src_memory) byte = static_cast<std::byte>(random());
  dst_memory.assign(static_cast<size_t>(dst_offset + grid.kept() * DTypeBytes(how.dst_dtype) + 64),
                    std::byte{0xA5});
  how.src = src_memory.data() + src_offset;
  how.dst = dst_memory.data() + dst_offset;
}

std::vector<std::byte> RandomPixels::Expected() const {
  std::vector<std::byte> expected = dst_memory;
  Normalization plain = how;
  plain.dst = expected.data() + dst_offset;
  PlainNormalize(plain);
  return expected;
}

}  // namespace sluice
