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

constexpr std::array<DTypeInfo, 15> kDTypes = {{
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
      "'; known: f64 f32 f16 bf16 f8e4m3 f8e5m2 i64 i32 i16 i8 u64 u32 u16 u8 bool and their "
      "safetensors names"));
}

}  // namespace sluice
