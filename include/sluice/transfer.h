// What to move: tensors, each with a layout to come from and a layout to go to.
#ifndef SLUICE_TRANSFER_H_
#define SLUICE_TRANSFER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "sluice/layout.h"
#include "sluice/tensor.h"

namespace sluice {

// One tensor of a transfer. `src_dtype` and `dst_dtype` must be equal for now.
struct TensorTransfer {
  std::string name;  // for messages
  std::vector<int64_t> shape;
  DType src_dtype = DType::kF32;
  DType dst_dtype = DType::kF32;
  Layout src;
  Layout dst;
};

// What a transfer is, the same on all ranks, in the same order.
struct TransferSpec {
  std::vector<TensorTransfer> tensors;
};

}  // namespace sluice

#endif  // SLUICE_TRANSFER_H_
