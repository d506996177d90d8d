// A lease inside a DLManagedTensor.
#include <dlpack/dlpack.h>

#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "sluice/stream.h"

namespace sluice {
namespace {

// Newer codes than Debian's header has, of DLPack 1.1.
constexpr uint8_t kBoolCode = 6;
constexpr uint8_t kF8E4M3Code = 10;  // kDLFloat8_e4m3fn
constexpr uint8_t kF8E4M3FnuzCode = 11;
constexpr uint8_t kF8E5M2Code = 12;  // kDLFloat8_e5m2
constexpr uint8_t kF8E5M2FnuzCode = 13;
constexpr uint8_t kF8E8M0Code = 14;  // kDLFloat8_e8m0fnu
constexpr uint8_t kF4E2M1Code = 17;  // kDLFloat4_e2m1fn

uint8_t CodeOf(DType dtype) {
  switch (dtype) {
    case DType::kF64:
    case DType::kF32:
    case DType::kF16:
      return kDLFloat;
    case DType::kBF16:
      return kDLBfloat;
    case DType::kF8E4M3:
      return kF8E4M3Code;
    case DType::kF8E5M2:
      return kF8E5M2Code;
    case DType::kI64:
    case DType::kI32:
    case DType::kI16:
    case DType::kI8:
      return kDLInt;
    case DType::kU64:
    case DType::kU32:
    case DType::kU16:
    case DType::kU8:
      return kDLUInt;
    case DType::kBool:
      return kBoolCode;
    case DType::kF8E8M0:
      return kF8E8M0Code;
    case DType::kF4E2M1x2:
      return kF4E2M1Code;
    case DType::kF8E4M3Fnuz:
      return kF8E4M3FnuzCode;
    case DType::kF8E5M2Fnuz:
      return kF8E5M2FnuzCode;
    case DType::kC64:
    case DType::kC128:
      return kDLComplex;
    case DType::kI4x2:
      return kDLInt;
  }
  return kDLOpaqueHandle;
}

// The owner and the view that a DLPack tensor refers to.
struct Exported {
  std::shared_ptr<void> owner;
  TensorView view;
  std::vector<int64_t> strides;
  DLManagedTensor tensor;
};

}  // namespace

absl::StatusOr<DLManagedTensor*> ToDLPack(Lease* lease, int64_t item) {
  if (lease->end()) return absl::InvalidArgumentError("the lease has no items");
  if (item < -1 || item >= lease->items()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the lease has no item ", item, ", only 0 .. ", lease->items() - 1));
  }
  if (item < 0 && !lease->is_batch()) {
    return absl::InvalidArgumentError("items of several sizes are no batch");
  }
  const TensorView view = item < 0 ? lease->batch() : lease->view(item);
  return ToDLPack(view, std::make_shared<Lease>(std::move(*lease)));
}

DLManagedTensor* ToDLPack(const TensorView& view, std::shared_ptr<void> owner) {
  auto exported = std::make_unique<Exported>();
  exported->owner = std::move(owner);
  exported->view = view;
  exported->strides = DenseStrides(view.shape);
  DLTensor& tensor = exported->tensor.dl_tensor;
  tensor.data = view.data;
  tensor.device = {static_cast<DLDeviceType>(view.device), view.device_ordinal};
  tensor.ndim = static_cast<int32_t>(view.shape.size());
  const bool halves = view.dtype == DType::kF4E2M1x2 || view.dtype == DType::kI4x2;
  const auto bits = static_cast<uint8_t>(8 * DTypeBytes(view.dtype));
  tensor.dtype = {CodeOf(view.dtype), static_cast<uint8_t>(halves ? bits / 2 : bits),
                  static_cast<uint16_t>(halves ? 2 : 1)};
  tensor.shape = exported->view.shape.data();
  tensor.strides = exported->strides.data();
  tensor.byte_offset = 0;
  exported->tensor.manager_ctx = exported.get();
  exported->tensor.deleter = [](DLManagedTensor* self) {
    delete static_cast<Exported*>(self->manager_ctx);
  };
  return &exported.release()->tensor;
}

}  // namespace sluice
