// Text as the bytes that readers of formats take.
#ifndef SLUICE_TESTS_STORAGE_BYTES_OF_H_
#define SLUICE_TESTS_STORAGE_BYTES_OF_H_

#include <cstddef>
#include <string>

#include "absl/types/span.h"

namespace sluice {

inline absl::Span<const std::byte> BytesOf(const std::string& text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

}  // namespace sluice

#endif  // SLUICE_TESTS_STORAGE_BYTES_OF_H_
