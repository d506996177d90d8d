// Dense views.
#include "sluice/tensor.h"

namespace sluice {

std::vector<int64_t> DenseStrides(absl::Span<const int64_t> shape) {
  std::vector<int64_t> strides(shape.size());
  int64_t stride = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    strides[d] = stride;
    stride *= shape[d];
  }
  return strides;
}

TensorView DenseView(void* data, absl::Span<const int64_t> shape, DType dtype) {
  TensorView view;
  view.data = data;
  view.shape.assign(shape.begin(), shape.end());
  view.strides = DenseStrides(shape);
  view.dtype = dtype;
  return view;
}

}  // namespace sluice
