// Tells whether tensors of PyTorch still lie where they lay, without reading them anew.
#ifndef SLUICE_PYTHON_SRC_FINGERPRINTS_H_
#define SLUICE_PYTHON_SRC_FINGERPRINTS_H_

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace sluice::python {

namespace nb = nanobind;

// Facts that DLPack's table of C functions tells of objects: address, device, dtype, shape,
// strides. Reading them takes about 30 ns for each of PyTorch's tensors. Refers to none of them.
//
// Thread: any, with the GIL.
class Fingerprint {
 public:
  // Types of Python whose objects can be looked at: tensors that are nothing but memory, and
  // DTensors. A DTensor has a tensor in `_local_tensor` and its placement in `_spec`.
  struct Types {
    std::vector<PyTypeObject*> plain;
    PyTypeObject* placed = nullptr;
  };

  // Makes the fingerprint of `objects`: tensors, DTensors, or others that stand for the memory that
  // `memories` lists at the same place. `Same` knows the others only by identity, and each must
  // always stand for the same memory. Null: some object cannot be looked at.
  static std::unique_ptr<Fingerprint> Make(nb::list objects, nb::list memories, const Types& types);

  // True if these objects are as the fingerprint's were. False may also mean that it cannot be
  // told.
  bool Same(nb::list objects) const;

 private:
  // The fingerprint of one tensor's memory. Sizes and strides are in `numbers_`.
  struct Print {
    const void* data = nullptr;
    uint64_t dtype = 0;   // code, bits and lanes
    uint64_t device = 0;  // kind and ordinal
    size_t dims = 0;
    size_t first = 0;
    bool may_be_negated = false;
  };
  struct Entry {
    PyObject* stands = nullptr;       // for memory; null: is a tensor itself
    nb::object spec;                  // of a DTensor
    nb::object order;                 // likewise: `shard_order`, where the spec has one
    std::vector<PyObject*> memories;  // of what stands for memory, which keeps them
    size_t prints = 0;                // how many
  };

  bool Add(nb::handle tensor);
  bool AddEntry(nb::handle object, nb::handle memory);
  bool SameMemory(nb::handle tensor, const Print& print) const;
  bool SamePlaced(nb::handle object, const Entry& entry, const Print& print) const;
  bool IsPlain(const PyObject* object) const;

  Types types_;
  std::vector<Entry> entries_;
  std::vector<Print> prints_;
  std::vector<int64_t> numbers_;
  std::vector<nb::object> watches_;  // weak references to what stands for memory
  // False once one of them is gone: then another object may have its address.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

void BindFingerprints(nb::module_& module);

}  // namespace sluice::python

#endif  // SLUICE_PYTHON_SRC_FINGERPRINTS_H_
