// The safetensors format: which tensors an object holds, and where in it their bytes lie.
//
// An object is: the length of the header, 8 bytes, little endian; the header, JSON padded with
// blanks; the tensors' bytes without holes (https://huggingface.co/docs/safetensors). This reads
// and writes headers; the data is for others.
#ifndef SLUICE_SRC_STORAGE_FORMAT_SAFETENSORS_H_
#define SLUICE_SRC_STORAGE_FORMAT_SAFETENSORS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "storage/element_type.h"

namespace sluice {

// The first bytes of an object, which tell how long its header is.
inline constexpr int64_t kSafetensorsPrefixBytes = 8;
// The header has texts beside tensors, under this name.
inline constexpr absl::string_view kSafetensorsMetadataKey = "__metadata__";

struct SafetensorsLimits {
  int64_t header_bytes = 100'000'000;  // of JSON: as the format's own library has it
  int64_t tensors = 4'000'000;
};

struct SafetensorsTensor {
  std::string name;
  ElementType type = ElementType::kU8;
  std::vector<int64_t> shape;  // at most kMaxTensorDims; none: one element
  int64_t begin = 0;           // bytes, from the beginning of the object
  int64_t end = 0;
  // Why nothing here can read it, though it is legal: another dtype, or more dimensions. `begin`
  // and `end` are known; `type` and `shape` are not. Empty: it can be read.
  std::string unreadable = {};

  int64_t bytes() const { return end - begin; }
};

using SafetensorsMetadata = std::vector<std::pair<std::string, std::string>>;

struct SafetensorsHeader {
  int64_t data_begin = 0;                  // in the object
  int64_t object_bytes = 0;                // where the data ends, and the object
  std::vector<SafetensorsTensor> tensors;  // by offset; without holes or overlap
  SafetensorsMetadata metadata;            // "__metadata__", in the order of the header
};

// How many bytes the object begins with before its data, from its first 8 (more are ignored).
// `object_bytes`: of the whole object, -1 if not known. DataLoss if there are fewer than 8, or
// fewer than the header needs; InvalidArgument if the header is longer than the limit.
absl::StatusOr<int64_t> SafetensorsHeaderBytes(absl::Span<const std::byte> first,
                                               int64_t object_bytes,
                                               const SafetensorsLimits& limits = {});

// Reads a header from the object's first SafetensorsHeaderBytes(..) bytes; more are ignored. An
// object of unknown size (-1) may be longer than its data. DataLoss if `first` or the object is too
// short; InvalidArgument names the tensor and what is wrong with it. Unknown keys are passed over.
absl::StatusOr<SafetensorsHeader> ParseSafetensorsHeader(absl::Span<const std::byte> first,
                                                         int64_t object_bytes,
                                                         const SafetensorsLimits& limits = {});

// A tensor that is to be written.
struct SafetensorsSpec {
  std::string name;
  ElementType type = ElementType::kU8;
  std::vector<int64_t> shape;
};

struct SafetensorsLayout {
  std::string header;                      // the object's bytes before its data
  int64_t object_bytes = 0;                // header and data
  std::vector<SafetensorsTensor> tensors;  // in the order of the specs
};

// Says where each tensor goes. Tensors of larger elements go first, otherwise in the order given.
// So each begins at a multiple of its element's size, as some readers ask. Data begins at a
// multiple of `data_alignment`, a multiple of 8. InvalidArgument for empty or equal names, text
// that is not UTF-8, shapes that no reader takes, and sizes that do not fit.
absl::StatusOr<SafetensorsLayout> LayOutSafetensors(
    absl::Span<const SafetensorsSpec> specs,
    const SafetensorsMetadata& metadata = {{"format", "pt"}}, int64_t data_alignment = 8);

}  // namespace sluice

#endif  // SLUICE_SRC_STORAGE_FORMAT_SAFETENSORS_H_
