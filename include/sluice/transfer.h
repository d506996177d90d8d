// The spec of a transfer: tensors, each with a layout to come from and a layout to go to.
#ifndef SLUICE_TRANSFER_H_
#define SLUICE_TRANSFER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "sluice/layout.h"
#include "sluice/tensor.h"

namespace sluice {

// One tensor of a transfer. Differing dtypes must both be floating ones. Elements are rounded to
// nearest even. Values that overflow become infinite. In f8e4m3, which has no infinity, such values
// and infinities become 448 with their sign. Under Partial source placements, contributions are
// reduced in `src_dtype`, in mesh order, and cast afterwards. The first of several Partial mesh
// dimensions is reduced first. Neighbouring dimensions with the same op (sum, max or min) are
// reduced at once, in the order of the mesh. The result has the same bits on any number of nodes.
struct TensorTransfer {
  std::string name = {};  // for messages
  std::vector<int64_t> shape = {};
  DType src_dtype = DType::kF32;
  DType dst_dtype = DType::kF32;
  Layout src = {};
  Layout dst = {};
  // Tensors of one window move together, and lower windows before higher ones. 0 .. kMaxWindow.
  int window = 0;
};
inline constexpr int kMaxWindow = (1 << 16) - 1;

// A transfer of a lower class has the first claim on the budget among transfers that run at once.
inline constexpr int kPriorityClasses = 4;

// A transfer's tensors, the same on all ranks, in the same order.
struct TransferSpec {
  std::vector<TensorTransfer> tensors = {};
  int priority_class = 0;  // 0 (the most urgent) .. kPriorityClasses - 1
};

}  // namespace sluice

#endif  // SLUICE_TRANSFER_H_
