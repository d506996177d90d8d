// The text in a .npy header: a Python dict of three entries, written as a literal.
#ifndef SLUICE_SRC_STORAGE_FORMAT_NPY_DICT_H_
#define SLUICE_SRC_STORAGE_FORMAT_NPY_DICT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace sluice {

struct NpyDict {
  std::string descr;
  bool fortran_order = false;
  std::vector<int64_t> shape;
};

// Reads e.g. "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }": keys in any order, each
// exactly once, blanks anywhere. InvalidArgument says where the text ends to be that.
absl::StatusOr<NpyDict> ParseNpyDict(absl::string_view text);

}  // namespace sluice

#endif  // SLUICE_SRC_STORAGE_FORMAT_NPY_DICT_H_
