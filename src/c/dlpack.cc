// Views from and to DLPack's tensors.
#include <dlpack/dlpack.h>

#include <array>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "c/call.h"
#include "c/convert.h"
#include "sluice/sluice.h"
#include "tensor/error_text.h"

namespace sluice::c {
namespace {

// Newer codes than Debian's header has, of DLPack 1.1.
constexpr uint8_t kBool = 6;
constexpr uint8_t kE4M3 = 10;
constexpr uint8_t kE4M3Fnuz = 11;
constexpr uint8_t kE5M2 = 12;
constexpr uint8_t kE5M2Fnuz = 13;
constexpr uint8_t kE8M0 = 14;
constexpr uint8_t kE2M1 = 17;

struct Pair {
  int32_t dtype;
  DLDataType there;
};
constexpr std::array<Pair, 22> kPairs = {{{SLUICE_F64, {kDLFloat, 64, 1}},
                                          {SLUICE_F32, {kDLFloat, 32, 1}},
                                          {SLUICE_F16, {kDLFloat, 16, 1}},
                                          {SLUICE_BF16, {kDLBfloat, 16, 1}},
                                          {SLUICE_F8E4M3, {kE4M3, 8, 1}},
                                          {SLUICE_F8E5M2, {kE5M2, 8, 1}},
                                          {SLUICE_I64, {kDLInt, 64, 1}},
                                          {SLUICE_I32, {kDLInt, 32, 1}},
                                          {SLUICE_I8, {kDLInt, 8, 1}},
                                          {SLUICE_U8, {kDLUInt, 8, 1}},
                                          {SLUICE_I16, {kDLInt, 16, 1}},
                                          {SLUICE_U16, {kDLUInt, 16, 1}},
                                          {SLUICE_U32, {kDLUInt, 32, 1}},
                                          {SLUICE_U64, {kDLUInt, 64, 1}},
                                          {SLUICE_BOOL, {kBool, 8, 1}},
                                          {SLUICE_F8E8M0, {kE8M0, 8, 1}},
                                          {SLUICE_F4E2M1X2, {kE2M1, 4, 2}},
                                          {SLUICE_I4X2, {kDLInt, 4, 2}},
                                          {SLUICE_F8E4M3FNUZ, {kE4M3Fnuz, 8, 1}},
                                          {SLUICE_F8E5M2FNUZ, {kE5M2Fnuz, 8, 1}},
                                          {SLUICE_C64, {kDLComplex, 64, 1}},
                                          {SLUICE_C128, {kDLComplex, 128, 1}}}};

constexpr bool InOrder() {
  for (size_t i = 0; i < kPairs.size(); ++i) {
    if (kPairs[i].dtype != static_cast<int32_t>(i) + 1) return false;
  }
  return true;
}
static_assert(InOrder());

absl::Status FromDlTensor(const DLTensor& tensor, sluice_view* view) {
  for (const Pair& pair : kPairs) {
    if (pair.there.code != tensor.dtype.code || pair.there.bits != tensor.dtype.bits ||
        pair.there.lanes != tensor.dtype.lanes) {
      continue;
    }
    view->data = tensor.data;
    view->byte_offset = static_cast<int64_t>(tensor.byte_offset);
    view->shape = tensor.shape;
    view->strides = tensor.strides;
    view->ndim = tensor.ndim;
    view->dtype = pair.dtype;
    view->device = static_cast<int32_t>(tensor.device.device_type);
    view->ordinal = tensor.device.device_id;
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("no dtype of Sluice has DLPack's code ",
                                                 tensor.dtype.code, " with ", tensor.dtype.bits,
                                                 " bits and ", tensor.dtype.lanes, " lanes"));
}

absl::Status ToDlTensor(const sluice_view& view, DLTensor* tensor) {
  SLUICE_RETURN_IF_ERROR(ToDType("view.dtype", view.dtype).status());
  tensor->data = view.data;
  tensor->byte_offset = static_cast<uint64_t>(view.byte_offset);
  tensor->shape = const_cast<int64_t*>(view.shape);      // NOLINT: DLPack's own signature
  tensor->strides = const_cast<int64_t*>(view.strides);  // NOLINT
  tensor->ndim = view.ndim;
  tensor->dtype = kPairs[static_cast<size_t>(view.dtype - 1)].there;
  tensor->device.device_type = view.device == 0 ? kDLCPU : static_cast<DLDeviceType>(view.device);
  tensor->device.device_id = view.ordinal;
  return absl::OkStatus();
}

}  // namespace
}  // namespace sluice::c

sluice_status sluice_view_from_dltensor(const void* dl_tensor, sluice_view* view) {
  return sluice::c::Guard("sluice_view_from_dltensor", [&]() -> absl::Status {
    SLUICE_RETURN_IF_ERROR(sluice::c::ClearResult("view", view));
    if (dl_tensor == nullptr) return sluice::c::IsNull("dl_tensor");
    return sluice::c::FromDlTensor(*static_cast<const DLTensor*>(dl_tensor), view);
  });
}

sluice_status sluice_view_to_dltensor(const sluice_view* view, void* dl_tensor) {
  return sluice::c::Guard("sluice_view_to_dltensor", [&]() -> absl::Status {
    if (view == nullptr) return sluice::c::IsNull("view");
    if (dl_tensor == nullptr) return sluice::c::IsNull("dl_tensor");
    return sluice::c::ToDlTensor(*view, static_cast<DLTensor*>(dl_tensor));
  });
}
