// What normalizations must give, one element at a time, from the definitions of the formats and of
// the grid of pixels.
//
// Shares no code with the implementation but the descriptions of what is to be done.
#ifndef SLUICE_TESTS_DEVICE_PLAIN_NORMALIZATION_H_
#define SLUICE_TESTS_DEVICE_PLAIN_NORMALIZATION_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "device/normalization.h"

namespace sluice {

// What an element becomes by the scale and the bias of `how`.
uint64_t NormalizedCode(const Normalization& how, uint64_t code);

// Carries out a normalization.
void PlainNormalize(const Normalization& how);

// A normalization of a part of an item of pixels, of random types, shape and crop, with its memory.
// The factors are of one scale, or of all channels, and so are those that make infinities and NaN.
struct RandomPixels {
  explicit RandomPixels(uint64_t seed);

  Normalization how;  // from src_memory to dst_memory
  ChannelFactors factors;
  std::vector<std::byte> src_memory;
  std::vector<std::byte> dst_memory;
  int64_t dst_offset = 0;

  // What dst_memory must hold.
  std::vector<std::byte> Expected() const;
};

}  // namespace sluice

#endif  // SLUICE_TESTS_DEVICE_PLAIN_NORMALIZATION_H_
