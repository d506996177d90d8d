// Python's tuples, lists and dicts as the values of the C++ library, and back.
#ifndef SLUICE_PYTHON_SRC_VALUES_H_
#define SLUICE_PYTHON_SRC_VALUES_H_

#include <nanobind/nanobind.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "sluice/layout.h"
#include "sluice/tensor.h"
#include "support.h"

namespace sluice::python {

std::vector<int64_t> IntsOf(nb::handle sequence, const char* what);
nb::tuple TupleOf(const std::vector<int64_t>& values);
DType DTypeOf(nb::handle name);
std::vector<std::string> DTypeNames();

// A tensor as tuples describe it: (name, shape, dtype, layout, view, extra, owner), of which the
// last two may be missing.
struct NamedTensor {
  std::string name = {};
  std::vector<int64_t> shape = {};
  DType dtype = DType::kF32;
  Layout layout = {};
  TensorView view = {};
  nb::object extra = nb::none();
  Owner owner = nullptr;
};
NamedTensor NamedTensorOf(nb::handle entry, int rank);

// A view tuple, or a list of them for a rank's boxes. With None there is no data.
TensorView ViewOf(nb::handle view, const std::string& name);
nb::tuple TupleOf(const TensorView& view);

// What the options of one call say. Each is taken once; None counts as not given.
class OptionReader {
 public:
  // `what`: "a session", for messages.
  OptionReader(nb::dict options, const char* what) : options_(options), what_(what) {}

  // The value, or an invalid object.
  nb::object Take(const char* key);
  // Whether the key is there, also with None.
  bool Has(const char* key) const { return options_.contains(key); }

  template <typename T>
  void Read(const char* key, T* into) {
    const nb::object value = Take(key);
    if (value.is_valid()) Convert(key, value, into);
  }
  template <typename T>
  void Read(const char* key, absl::optional<T>* into) {
    const nb::object value = Take(key);
    if (!value.is_valid()) return;
    into->emplace();
    Convert(key, value, &**into);
  }
  void Read(const char* key, absl::Duration* into) { *into = DurationOf(Take(key), key, *into); }
  // ValueError for options that nobody has taken.
  void Finish() const;

 private:
  template <typename T>
  void Convert(const char* key, nb::handle value, T* into) {
    if (!nb::try_cast(value, *into)) RefuseType(key, value);
  }
  [[noreturn]] void RefuseType(const char* key, nb::handle value) const;

  const nb::dict options_;
  const std::string what_;
  std::set<std::string> known_;
};

// Whether the rank is in the mesh, and at 0 along all Replicate dimensions; of boxes: has some.
bool IsFirstCopy(const Layout& layout, int rank);

void BindValues(nb::module_& module);

}  // namespace sluice::python

#endif  // SLUICE_PYTHON_SRC_VALUES_H_
