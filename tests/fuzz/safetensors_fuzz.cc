// Fuzz target: whatever the bytes are, a safetensors header is an error or a whole object.
#include <algorithm>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "fuzz/fuzz_bytes.h"
#include "storage/format/catalog_formats.h"
#include "storage/format/safetensors.h"

namespace sluice {
namespace {

// Tensors of more bytes than this can be read, but neither written nor made a catalog of.
constexpr int64_t kMostBytes = int64_t{1} << 61;

void CheckWhole(const SafetensorsHeader& header) {
  int64_t end = header.data_begin;
  for (const SafetensorsTensor& tensor : header.tensors) {
    SLUICE_CHECK(tensor.begin == end && tensor.end >= end, "a hole, or an overlap");
    SLUICE_CHECK(!tensor.name.empty() && tensor.shape.size() <= kMaxTensorDims, "a bad tensor");
    end = tensor.end;
  }
  SLUICE_CHECK(end == header.object_bytes, "an object that does not end with its tensors");
}

bool HasUnreadable(const SafetensorsHeader& header) {
  return std::any_of(header.tensors.begin(), header.tensors.end(),
                     [](const SafetensorsTensor& tensor) { return !tensor.unreadable.empty(); });
}

void CheckRoundTrip(const SafetensorsHeader& header) {
  std::vector<SafetensorsSpec> specs;
  for (const SafetensorsTensor& tensor : header.tensors) {
    specs.push_back({tensor.name, tensor.type, tensor.shape});
  }
  const auto layout = LayOutSafetensors(specs, header.metadata);
  SLUICE_CHECK(layout.ok(), "tensors that were read cannot be written");
  const auto again = ParseSafetensorsHeader(BytesOf(layout->header), layout->object_bytes);
  SLUICE_CHECK(again.ok(), "what was written cannot be read");
  SLUICE_CHECK(again->metadata == header.metadata, "other metadata");
  SLUICE_CHECK(again->tensors.size() == specs.size(), "another number of tensors");
  absl::flat_hash_map<std::string, const SafetensorsTensor*> by_name;
  for (const SafetensorsTensor& tensor : again->tensors) by_name[tensor.name] = &tensor;
  for (const SafetensorsTensor& wanted : layout->tensors) {
    const SafetensorsTensor& found = *by_name.at(wanted.name);
    SLUICE_CHECK(found.begin == wanted.begin && found.end == wanted.end, "another place");
    SLUICE_CHECK(found.type == wanted.type && found.shape == wanted.shape, "another tensor");
  }
}

void Try(absl::string_view object, int64_t object_bytes) {
  const auto header = ParseSafetensorsHeader(BytesOf(object), object_bytes);
  if (!header.ok()) return CheckError(header.status());
  CheckWhole(*header);
  SLUICE_CHECK(object_bytes < 0 || header->object_bytes == object_bytes, "another size");
  if (header->object_bytes > kMostBytes) return;
  if (!HasUnreadable(*header)) CheckRoundTrip(*header);
  Catalog catalog;
  if (HasUnreadable(*header)) {
    SLUICE_CHECK(!AddSafetensorsObject("object", *header, &catalog).ok(), "unreadable items");
    return;
  }
  SLUICE_CHECK(AddSafetensorsObject("object", *header, &catalog).ok(), "no catalog");
  CheckInside(catalog);
}

}  // namespace
}  // namespace sluice

SLUICE_FUZZ_TARGET(safetensors) {
  const absl::string_view text = sluice::TextOf(data, size);
  sluice::Try(text, static_cast<int64_t>(size));
  sluice::Try(text, -1);
  // As the JSON of a header, so that mutations need not keep its length right.
  std::string object;
  for (int i = 0; i < 8; ++i) object += static_cast<char>(size >> (8 * i) & 0xFF);
  sluice::Try(object + std::string(text), -1);
  return 0;
}
