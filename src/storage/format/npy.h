// The .npy format: one array of numbers after a short header.
//
// An object is: "\x93NUMPY", the version's two bytes, the header's length, the header (a Python
// dict as text), the elements. The length has 2 bytes, from version 2 on 4. See
// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html. This reads and writes
// headers; the data is for others.
#ifndef SLUICE_SRC_STORAGE_FORMAT_NPY_H_
#define SLUICE_SRC_STORAGE_FORMAT_NPY_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "storage/element_type.h"

namespace sluice {

// The first bytes of an object, which tell how long its header is.
inline constexpr int64_t kNpyPrefixBytes = 12;

// No header that this reads is longer.
inline constexpr int64_t kNpyHeaderBytesMax = 1 << 20;

struct NpyHeader {
  ElementType type = ElementType::kU8;
  std::vector<int64_t> shape;  // row-major; at most kMaxTensorDims; none: one element
  int64_t data_begin = 0;      // in the object
  int64_t object_bytes = 0;    // where the data ends, and the object
};

// How many bytes the object begins with before its data, from its first 12 (more are ignored).
// `object_bytes`: of the whole object, -1 if not known. DataLoss if the object is shorter;
// InvalidArgument if this is not .npy, or of a version other than 1, 2 and 3.
absl::StatusOr<int64_t> NpyHeaderBytes(absl::Span<const std::byte> first, int64_t object_bytes);

// Reads a header from the object's first NpyHeaderBytes(..) bytes; more are ignored. An object of
// unknown size (-1) may be longer than its data. DataLoss if `first` or the object is too short.
// InvalidArgument says what is wrong or not supported: big-endian, objects, structures, strings,
// Fortran order of more than one dimension, bytes after the data.
absl::StatusOr<NpyHeader> ParseNpyHeader(absl::Span<const std::byte> first, int64_t object_bytes);

// A header of version 1.0. Data begins at a multiple of `data_alignment`, a multiple of 64, which
// numpy's own writer has. InvalidArgument for types that numpy does not have, and for shapes whose
// header or bytes do not fit.
absl::StatusOr<std::string> NpyHeaderText(ElementType type, absl::Span<const int64_t> shape,
                                          int64_t data_alignment = 64);

}  // namespace sluice

#endif  // SLUICE_SRC_STORAGE_FORMAT_NPY_H_
