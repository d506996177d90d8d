// Reads items out of headers.
#include "storage/format/catalog_formats.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "storage/tensor_bytes.h"
#include "tensor/error_text.h"
#include "tensor/quoted.h"

namespace sluice {

absl::string_view ShardFormatName(ShardFormat format) {
  switch (format) {
    case ShardFormat::kRaw:
      return "raw";
    case ShardFormat::kNpy:
      return "npy";
    case ShardFormat::kSafetensors:
      return "safetensors";
  }
  return "unknown";
}

absl::StatusOr<ShardFormat> ParseShardFormat(absl::string_view text) {
  for (const auto format : {ShardFormat::kRaw, ShardFormat::kNpy, ShardFormat::kSafetensors}) {
    if (text == ShardFormatName(format)) return format;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("there is no format ", Quoted(text), "; there are: raw, npy, safetensors"));
}

absl::Status AddRawObject(std::string name, int64_t bytes, int64_t record_bytes,
                          const ItemType* type, Catalog* catalog) {
  if (record_bytes < 1 || bytes < 0) {
    return absl::InvalidArgumentError(absl::StrCat("object ", Quoted(name), " of ", bytes,
                                                   " bytes has no records of ", record_bytes));
  }
  if (bytes % record_bytes != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "object ", Quoted(name), " has ", bytes, " bytes, which is no multiple of its ",
        "records of ", record_bytes, ": ", bytes % record_bytes, " are left over"));
  }
  SLUICE_RETURN_IF_ERROR(catalog->AddObject(std::move(name), bytes));
  return catalog->AddItems(bytes / record_bytes, 0, record_bytes, record_bytes, type);
}

absl::Status AddNpyObject(std::string name, const NpyHeader& header, Catalog* catalog) {
  if (header.shape.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("object ", Quoted(name), " has an array of no dimensions, so no items"));
  }
  const ItemType type = {header.type, {header.shape.begin() + 1, header.shape.end()}};
  const auto item_bytes = TensorBytes(type.element, type.shape);
  // An array of no items may have items of any size.
  if (!item_bytes.has_value() || *item_bytes == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("object ", Quoted(name), " has items of no bytes, or of more than 63 bits"));
  }
  SLUICE_RETURN_IF_ERROR(catalog->AddObject(std::move(name), header.object_bytes));
  return catalog->AddItems(header.shape[0], header.data_begin, *item_bytes, *item_bytes, &type);
}

absl::Status AddSafetensorsObject(std::string name, const SafetensorsHeader& header,
                                  Catalog* catalog) {
  absl::Status status = catalog->AddObject(std::move(name), header.object_bytes);
  for (const SafetensorsTensor& tensor : header.tensors) {
    if (!status.ok()) return status;
    if (!tensor.unreadable.empty()) {
      return MakeError(absl::StatusCode::kInvalidArgument,
                       TensorInWords(tensor.name, Quoted(tensor.name)), ": ", tensor.unreadable);
    }
    const ItemType type = {tensor.type, tensor.shape};
    status = catalog->AddItems(1, tensor.begin, tensor.bytes(), tensor.bytes(), &type);
  }
  return status;
}

}  // namespace sluice
