// The element types that files of data and checkpoints name: more than this library computes with.
#ifndef SLUICE_SRC_STORAGE_ELEMENT_TYPE_H_
#define SLUICE_SRC_STORAGE_ELEMENT_TYPE_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "sluice/tensor.h"

namespace sluice {

// All types of the safetensors format whose elements are whole bytes.
enum class ElementType : uint8_t {
  kBool,
  kU8,
  kI8,
  kF8E5M2,
  kF8E4M3,
  kF8E8M0,
  kI16,
  kU16,
  kF16,
  kBF16,
  kI32,
  kU32,
  kF32,
  kC64,
  kF64,
  kI64,
  kU64,
  kF8E4M3Fnuz,
  kF8E5M2Fnuz
};

int64_t ElementBytes(ElementType type);

// Short name, as DTypeName spells it: "bf16", "i16".
absl::string_view ElementName(ElementType type);

// As in a safetensors header: "BF16", "F8_E4M3".
absl::string_view SafetensorsName(ElementType type);

// As in a .npy header of a little-endian machine: "<f4", "|u1". Empty if numpy has no such type.
absl::string_view NpyDescr(ElementType type);

// The type that this library computes with, if there is one.
std::optional<DType> DTypeOf(ElementType type);

// The type as files name it, if they can: none has half a byte, or 16 bytes.
std::optional<ElementType> ElementTypeOf(DType dtype);

// Reads a short name or a safetensors name. InvalidArgument quotes the text that is neither.
absl::StatusOr<ElementType> ParseElementType(absl::string_view text);

// Reads a safetensors name only.
absl::StatusOr<ElementType> ParseSafetensorsName(absl::string_view text);

// Reads a .npy type such as "<f4". InvalidArgument says what of it is not supported.
absl::StatusOr<ElementType> ParseNpyDescr(absl::string_view text);

}  // namespace sluice

#endif  // SLUICE_SRC_STORAGE_ELEMENT_TYPE_H_
