// Dense views.
#include "sluice/tensor.h"
#include "tensor/checked.h"

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

TensorView SourceView::Of(const void* data, size_t count, absl::Span<const int64_t> shape,
                          DType dtype) {
  const int64_t all[] = {static_cast<int64_t>(count)};
  const bool fits = CheckedProduct(shape) == all[0];
  return DenseView(const_cast<void*>(data), fits ? shape : absl::MakeConstSpan(all), dtype);
}

absl::Span<const TensorView> SourceViews::views(std::vector<TensorView>* memory) const {
  if (sources_.empty()) return views_;
  memory->reserve(sources_.size());
  for (const SourceView& source : sources_) memory->push_back(source.view());
  return *memory;
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
