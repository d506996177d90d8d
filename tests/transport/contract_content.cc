// Content by hashing and by a generator, one byte or element after the other.
#include "transport/contract_content.h"

#include <algorithm>
#include <cstring>
#include <random>

namespace sluice {

size_t RowLay::Extent(size_t bytes) const {
  if (row_bytes == 0 || bytes == 0) return bytes;
  return (bytes / row_bytes - 1) * stride_bytes + row_bytes;
}

std::vector<std::byte> PatternContent(size_t bytes, uint64_t seed) {
  std::vector<std::byte> content(bytes);
  for (size_t i = 0; i < bytes; i += 8) {
    uint64_t x = (i / 8 + 1) * 0x9E3779B97F4A7C15u + seed * 0xBF58476D1CE4E5B9u;
    x ^= x >> 29;
    std::memcpy(&content[i], &x, std::min<size_t>(8, bytes - i));
  }
  return content;
}

std::vector<std::byte> ElementContent(size_t elements, size_t element_bytes, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::byte> content(elements * element_bytes);
  for (size_t at = 0; at < content.size(); at += element_bytes) {
    const uint64_t bits = random();
    const bool special = bits % 3 == 0;
    const uint64_t value = !special ? random() : (bits & 8) != 0 ? ~uint64_t{0} : 0;
    std::memcpy(&content[at], &value, element_bytes);
    if (special && (bits & 16) != 0) content[at + element_bytes - 1] ^= std::byte{0x80};
  }
  return content;
}

std::vector<std::byte> SpreadContent(const RowLay& lay, const std::vector<std::byte>& content) {
  if (lay.row_bytes == 0) return content;
  std::vector<std::byte> spread(lay.Extent(content.size()), kContractGap);
  size_t to = 0;
  for (size_t at = 0; at < content.size(); at += lay.row_bytes, to += lay.stride_bytes) {
    std::memcpy(&spread[to], &content[at], lay.row_bytes);
  }
  return spread;
}

bool AreSame(const std::vector<std::byte>& a, const std::vector<std::byte>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
}

}  // namespace sluice
