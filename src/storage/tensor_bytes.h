// Computes how many bytes a tensor of a file has.
#ifndef SLUICE_SRC_STORAGE_TENSOR_BYTES_H_
#define SLUICE_SRC_STORAGE_TENSOR_BYTES_H_

#include <cstdint>
#include <limits>
#include <optional>

#include "absl/types/span.h"
#include "storage/element_type.h"
#include "tensor/checked.h"

namespace sluice {

// Bytes of a dense tensor; its sizes are not negative. Nothing if they do not fit 63 bits.
inline std::optional<int64_t> TensorBytes(ElementType type, absl::Span<const int64_t> shape) {
  const int64_t element_bytes = ElementBytes(type);
  const auto elements = CheckedProduct(shape, std::numeric_limits<int64_t>::max() / element_bytes);
  if (!elements.has_value()) return std::nullopt;
  return *elements * element_bytes;
}

}  // namespace sluice

#endif  // SLUICE_SRC_STORAGE_TENSOR_BYTES_H_
