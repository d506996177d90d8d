// Fuzz target: whatever the bytes are, a .npy header is an error or an array.
#include <string>

#include "fuzz/fuzz_bytes.h"
#include "storage/format/catalog_formats.h"
#include "storage/format/npy.h"

namespace sluice {
namespace {

void CheckRoundTrip(const NpyHeader& header) {
  const auto text = NpyHeaderText(header.type, header.shape);
  SLUICE_CHECK(text.ok(), "an array that was read cannot be written");
  const int64_t data_bytes = header.object_bytes - header.data_begin;
  if (data_bytes > kObjectBytesMax) return;
  const auto begin = static_cast<int64_t>(text->size());
  const auto again = ParseNpyHeader(BytesOf(*text), begin + data_bytes);
  SLUICE_CHECK(again.ok(), "what was written cannot be read");
  SLUICE_CHECK(again->type == header.type && again->shape == header.shape, "another array");
  SLUICE_CHECK(again->data_begin == begin, "another place");
}

void Try(absl::string_view object, int64_t object_bytes) {
  const auto header = ParseNpyHeader(BytesOf(object), object_bytes);
  if (!header.ok()) return CheckError(header.status());
  SLUICE_CHECK(header->data_begin <= header->object_bytes, "data that ends before it begins");
  SLUICE_CHECK(object_bytes < 0 || header->object_bytes == object_bytes, "another size");
  CheckRoundTrip(*header);
  Catalog catalog;
  const absl::Status status = AddNpyObject("object", *header, &catalog);
  if (!status.ok()) return CheckError(status);
  CheckInside(catalog);
}

}  // namespace
}  // namespace sluice

SLUICE_FUZZ_TARGET(npy) {
  const absl::string_view text = sluice::TextOf(data, size);
  sluice::Try(text, static_cast<int64_t>(size));
  sluice::Try(text, -1);
  // As the text of a header, so that mutations need not keep its length right.
  if (size > 0xFFFF) return 0;
  std::string object("\223NUMPY\1\0", 8);
  object += {static_cast<char>(size & 0xFF), static_cast<char>(size >> 8)};
  sluice::Try(object + std::string(text), -1);
  return 0;
}
