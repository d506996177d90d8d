// What messages of the contracts hold, and how it lies in rows.
#ifndef SLUICE_TESTS_TRANSPORT_CONTRACT_CONTENT_H_
#define SLUICE_TESTS_TRANSPORT_CONTRACT_CONTENT_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sluice {

// How one end of an operation lays out its bytes. No rows: one stretch.
struct RowLay {
  size_t row_bytes = 0;
  size_t stride_bytes = 0;

  size_t Extent(size_t bytes) const;
};

// What lies between rows, and in memory that nothing has been written to.
inline constexpr std::byte kContractGap{0xA5};

// Bytes that differ from place to place, and from seed to seed.
std::vector<std::byte> PatternContent(size_t bytes, uint64_t seed);
// Elements of any bits; a third of them zeros, NaN and the like, of both signs.
std::vector<std::byte> ElementContent(size_t elements, size_t element_bytes, uint64_t seed);
// `content` as it lies in rows of `lay`, with gaps between them.
std::vector<std::byte> SpreadContent(const RowLay& lay, const std::vector<std::byte>& content);
// Whether two contents are equal.
bool AreSame(const std::vector<std::byte>& a, const std::vector<std::byte>& b);

}  // namespace sluice

#endif  // SLUICE_TESTS_TRANSPORT_CONTRACT_CONTENT_H_
