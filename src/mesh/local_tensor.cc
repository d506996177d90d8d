// Memory of a rank's part of a tensor.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "sluice/layout.h"
#include "sluice/tensor.h"
#include "tensor/error_text.h"

namespace sluice {

absl::StatusOr<LocalTensor> LocalTensor::Create(const Layout& layout,
                                                absl::Span<const int64_t> shape, DType dtype,
                                                int rank) {
  SLUICE_ASSIGN_OR_RETURN(const std::vector<int64_t> local, LocalShape(layout, shape, rank));
  SLUICE_ASSIGN_OR_RETURN(std::vector<std::vector<IndexRange>> owned,
                          OwnedRanges(layout, shape, rank));
  LocalTensor tensor;
  tensor.bytes_ = static_cast<size_t>(DTypeBytes(dtype));
  for (const int64_t size : local) tensor.bytes_ *= static_cast<size_t>(size);
  tensor.memory_ = std::make_unique<std::byte[]>(tensor.bytes_);
  tensor.view_ = DenseView(tensor.memory_.get(), local, dtype);
  tensor.whole_.assign(shape.begin(), shape.end());
  tensor.owned_ = std::move(owned);
  return tensor;
}

std::vector<int64_t> LocalTensor::GlobalIndices() const {
  std::vector<int64_t> indices = {0};
  for (size_t d = 0; d < whole_.size(); ++d) {
    std::vector<int64_t> longer;
    longer.reserve(indices.size() * static_cast<size_t>(view_.shape[d]));
    for (const int64_t prefix : indices) {
      for (const IndexRange& range : owned_[d]) {
        for (int64_t i = range.begin; i < range.end; ++i) longer.push_back(prefix * whole_[d] + i);
      }
    }
    indices = std::move(longer);
  }
  return indices;
}

}  // namespace sluice
