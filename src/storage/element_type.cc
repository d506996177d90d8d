// The table of element types, and reading their names.
#include "storage/element_type.h"

#include <array>
#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tensor/quoted.h"

namespace sluice {
namespace {

struct ElementInfo {
  ElementType type;
  int64_t bytes;
  absl::string_view name;
  absl::string_view safetensors_name;  // https://huggingface.co/docs/safetensors
  absl::string_view npy_descr;  // https://numpy.org/doc/stable/reference/arrays.interface.html
};

constexpr std::array<ElementInfo, 19> kElements = {{
    {ElementType::kBool, 1, "bool", "BOOL", "|b1"},
    {ElementType::kU8, 1, "u8", "U8", "|u1"},
    {ElementType::kI8, 1, "i8", "I8", "|i1"},
    {ElementType::kF8E5M2, 1, "f8e5m2", "F8_E5M2", ""},
    {ElementType::kF8E4M3, 1, "f8e4m3", "F8_E4M3", ""},
    {ElementType::kF8E8M0, 1, "f8e8m0", "F8_E8M0", ""},
    {ElementType::kI16, 2, "i16", "I16", "<i2"},
    {ElementType::kU16, 2, "u16", "U16", "<u2"},
    {ElementType::kF16, 2, "f16", "F16", "<f2"},
    {ElementType::kBF16, 2, "bf16", "BF16", ""},
    {ElementType::kI32, 4, "i32", "I32", "<i4"},
    {ElementType::kU32, 4, "u32", "U32", "<u4"},
    {ElementType::kF32, 4, "f32", "F32", "<f4"},
    {ElementType::kC64, 8, "c64", "C64", "<c8"},
    {ElementType::kF64, 8, "f64", "F64", "<f8"},
    {ElementType::kI64, 8, "i64", "I64", "<i8"},
    {ElementType::kU64, 8, "u64", "U64", "<u8"},
    {ElementType::kF8E4M3Fnuz, 1, "f8e4m3fnuz", "F8_E4M3FNUZ", ""},
    {ElementType::kF8E5M2Fnuz, 1, "f8e5m2fnuz", "F8_E5M2FNUZ", ""},
}};

const ElementInfo& InfoOf(ElementType type) { return kElements[static_cast<size_t>(type)]; }

constexpr absl::string_view kBigEndian = ">";

}  // namespace

int64_t ElementBytes(ElementType type) { return InfoOf(type).bytes; }

absl::string_view ElementName(ElementType type) { return InfoOf(type).name; }

absl::string_view SafetensorsName(ElementType type) { return InfoOf(type).safetensors_name; }

absl::string_view NpyDescr(ElementType type) { return InfoOf(type).npy_descr; }

std::optional<DType> DTypeOf(ElementType type) {
  const absl::StatusOr<DType> dtype = ParseDType(ElementName(type));
  return dtype.ok() ? std::optional<DType>(*dtype) : std::nullopt;
}

std::optional<ElementType> ElementTypeOf(DType dtype) {
  const absl::StatusOr<ElementType> type = ParseElementType(DTypeName(dtype));
  return type.ok() ? std::optional<ElementType>(*type) : std::nullopt;
}

absl::StatusOr<ElementType> ParseElementType(absl::string_view text) {
  for (const ElementInfo& info : kElements) {
    if (text == info.name || text == info.safetensors_name) return info.type;
  }
  return absl::InvalidArgumentError(absl::StrCat("unknown dtype ", Quoted(text)));
}

absl::StatusOr<ElementType> ParseSafetensorsName(absl::string_view text) {
  for (const ElementInfo& info : kElements) {
    if (text == info.safetensors_name) return info.type;
  }
  return absl::InvalidArgumentError(absl::StrCat("unknown dtype ", Quoted(text)));
}

absl::StatusOr<ElementType> ParseNpyDescr(absl::string_view text) {
  // The byte order's mark, and the kind and bytes after it.
  const absl::string_view mark = text.substr(0, 1);
  const absl::string_view rest = text.substr(mark.size());
  for (const ElementInfo& info : kElements) {
    if (info.npy_descr.empty()) continue;
    if (text == info.npy_descr) return info.type;
    // One byte has no order, and numpy reads it with any mark.
    const bool any_order = info.bytes == 1 && (mark == "<" || mark == kBigEndian);
    if (any_order && rest == info.npy_descr.substr(1)) return info.type;
  }
  const auto refused = [&](absl::string_view why) {
    return absl::InvalidArgumentError(absl::StrCat("type ", Quoted(text), " is ", why));
  };
  if (mark == kBigEndian) return refused("big-endian; only little-endian data is read");
  if (absl::StartsWith(rest, "O")) return refused("of Python objects, which are never read");
  return refused("not a number that is supported");
}

}  // namespace sluice
