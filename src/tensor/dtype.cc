// Names and sizes of element types.
#include <array>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "sluice/tensor.h"

namespace sluice {
namespace {

struct DTypeInfo {
  DType dtype;
  int64_t bytes;
  absl::string_view name;
  absl::string_view safetensors_name;  // https://huggingface.co/docs/safetensors
};

constexpr std::array<DTypeInfo, 22> kDTypes = {{
    {DType::kF64, 8, "f64", "F64"},
    {DType::kF32, 4, "f32", "F32"},
    {DType::kF16, 2, "f16", "F16"},
    {DType::kBF16, 2, "bf16", "BF16"},
    {DType::kF8E4M3, 1, "f8e4m3", "F8_E4M3"},
    {DType::kF8E5M2, 1, "f8e5m2", "F8_E5M2"},
    {DType::kI64, 8, "i64", "I64"},
    {DType::kI32, 4, "i32", "I32"},
    {DType::kI8, 1, "i8", "I8"},
    {DType::kU8, 1, "u8", "U8"},
    {DType::kI16, 2, "i16", "I16"},
    {DType::kU16, 2, "u16", "U16"},
    {DType::kU32, 4, "u32", "U32"},
    {DType::kU64, 8, "u64", "U64"},
    {DType::kBool, 1, "bool", "BOOL"},
    {DType::kF8E8M0, 1, "f8e8m0", "F8_E8M0"},
    {DType::kF4E2M1x2, 1, "f4e2m1x2", "F4_E2M1_X2"},  // no name of safetensors, whose F4 is half
    {DType::kI4x2, 1, "i4x2", "I4_X2"},               // likewise none
    {DType::kF8E4M3Fnuz, 1, "f8e4m3fnuz", "F8_E4M3FNUZ"},
    {DType::kF8E5M2Fnuz, 1, "f8e5m2fnuz", "F8_E5M2FNUZ"},
    {DType::kC64, 8, "c64", "C64"},
    {DType::kC128, 16, "c128", "C128"},
}};

const DTypeInfo& InfoOf(DType dtype) { return kDTypes[static_cast<size_t>(dtype)]; }

}  // namespace

int64_t DTypeBytes(DType dtype) { return InfoOf(dtype).bytes; }

absl::string_view DTypeName(DType dtype) { return InfoOf(dtype).name; }

absl::StatusOr<DType> ParseDType(absl::string_view text) {
  for (const DTypeInfo& info : kDTypes) {
    if (text == info.name || text == info.safetensors_name) return info.dtype;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "unknown dtype '", text,
      "'; known: f64 f32 f16 bf16 f8e4m3 f8e5m2 i64 i32 i16 i8 u64 u32 u16 u8 bool f8e8m0 "
      "f4e2m1x2 i4x2 f8e4m3fnuz f8e5m2fnuz c64 c128 and their safetensors names"));
}

}  // namespace sluice
