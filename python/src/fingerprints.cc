// Looks at tensors by DLPack's table of C functions.
#include "fingerprints.h"

#include <algorithm>

#include "support.h"

namespace sluice::python {
namespace {

// The parts that are used of DLPack 1.3's structures, which libdlpack-dev of Debian does not have:
// https://github.com/dmlc/dlpack/blob/v1.3/include/dlpack/dlpack.h.
struct DlTensor {
  void* data;
  int32_t device_type;
  int32_t device_id;
  int32_t ndim;
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
};

struct ExchangeApi {
  uint32_t major;
  uint32_t minor;
  ExchangeApi* previous;
  void* allocate;
  void* managed_from_object;
  void* managed_to_object;
  // Fills `out`, which is good as long as the object is. Not 0: an error of Python's is set.
  int (*tensor_from_object)(void* object, DlTensor* out);
  void* current_stream;
};

constexpr uint8_t kFloat = 2;
constexpr uint8_t kBfloat = 4;
constexpr uint8_t kComplex = 5;

// Null: objects of the type have no such table. It stays as long as the process.
const ExchangeApi* ApiOf(PyTypeObject* type) {
  static PyTypeObject* last = nullptr;  // PyTorch's tensors, nearly always; with the GIL
  static const ExchangeApi* api = nullptr;
  if (type == last) return api;
  const nb::handle of(reinterpret_cast<PyObject*>(type));
  const nb::object capsule = nb::getattr(of, "__dlpack_c_exchange_api__", nb::none());
  const ExchangeApi* found = nullptr;
  if (PyCapsule_IsValid(capsule.ptr(), "dlpack_exchange_api") != 0) {
    found =
        static_cast<const ExchangeApi*>(PyCapsule_GetPointer(capsule.ptr(), "dlpack_exchange_api"));
  }
  if (found != nullptr && (found->major != 1 || found->tensor_from_object == nullptr)) {
    found = nullptr;
  }
  last = type;
  api = found;
  return found;
}

bool Read(nb::handle tensor, DlTensor* read) {
  const ExchangeApi* const api = ApiOf(Py_TYPE(tensor.ptr()));
  if (api == nullptr) return false;
  if (api->tensor_from_object(tensor.ptr(), read) == 0) return true;
  PyErr_Clear();
  return false;
}

uint64_t DTypeOf(const DlTensor& read) {
  return uint64_t{read.code} << 24 | uint64_t{read.bits} << 16 | read.lanes;
}

uint64_t DeviceOf(const DlTensor& read) {
  return uint64_t{static_cast<uint32_t>(read.device_type)} << 32 |
         static_cast<uint32_t>(read.device_id);
}

const void* AddressOf(const DlTensor& read) {
  if (read.data == nullptr) return nullptr;
  return static_cast<const char*>(read.data) + read.byte_offset;
}

// Whether the tensor shows other values than its memory has: the imaginary part of a conjugate.
// PyTorch says that of such a part alone, which has gaps, or is one element.
bool IsNegated(nb::handle tensor) {
  const nb::object answer = nb::steal(PyObject_CallMethod(tensor.ptr(), "is_neg", nullptr));
  if (!answer.is_valid()) {
    PyErr_Clear();
    return true;
  }
  return answer.ptr() != Py_False;
}

bool IsDense(const DlTensor& read) {
  int64_t expected = 1;
  for (int32_t d = read.ndim; d-- > 0;) {
    if (read.strides != nullptr && read.strides[d] != expected) return false;
    expected *= read.shape[d];
  }
  return true;
}

bool IsEqual(nb::handle a, nb::handle b) {
  if (a.ptr() == b.ptr()) return true;
  const int equal = PyObject_RichCompareBool(a.ptr(), b.ptr(), Py_EQ);
  if (equal < 0) PyErr_Clear();
  return equal == 1;
}

// Invalid where there is none.
nb::object Attribute(nb::handle object, const char* name) {
  nb::object value = nb::steal(PyObject_GetAttrString(object.ptr(), name));
  if (!value.is_valid()) PyErr_Clear();
  return value;
}

nb::object OrderOf(nb::handle spec) {
  nb::object order = Attribute(spec, "shard_order");
  return order.is_valid() ? order : nb::none();
}

}  // namespace

std::unique_ptr<Fingerprint> Fingerprint::Make(nb::list objects, nb::list memories,
                                               const Types& types) {
  auto made = std::make_unique<Fingerprint>();
  made->types_ = types;
  const size_t count = nb::len(objects);
  if (nb::len(memories) != count) throw nb::value_error("one of memories for each of objects");
  for (size_t i = 0; i < count; ++i) {
    if (!made->AddEntry(objects[i], memories[i])) return nullptr;
  }
  return made;
}

bool Fingerprint::AddEntry(nb::handle object, nb::handle memory) {
  Entry entry;
  const size_t before = prints_.size();
  if (!memory.is_none()) {
    entry.stands = object.ptr();
    for (const nb::handle one : nb::list(nb::borrow(memory))) {
      entry.memories.push_back(one.ptr());
      if (!IsPlain(one.ptr()) || !Add(one)) return false;
    }
    watches_.push_back(
        nb::weakref(object, nb::cpp_function([alive = alive_](nb::handle) { *alive = false; })));
  } else if (IsPlain(object.ptr())) {
    if (!Add(object)) return false;
  } else if (types_.placed != nullptr && Py_TYPE(object.ptr()) == types_.placed) {
    entry.spec = Attribute(object, "_spec");
    const nb::object local = Attribute(object, "_local_tensor");
    if (!entry.spec.is_valid() || !local.is_valid() || !IsPlain(local.ptr())) return false;
    entry.order = OrderOf(entry.spec);
    if (!Add(local)) return false;
  } else {
    return false;
  }
  entry.prints = prints_.size() - before;
  entries_.push_back(std::move(entry));
  return true;
}

bool Fingerprint::Add(nb::handle tensor) {
  DlTensor read{};
  if (!Read(tensor, &read) || read.code == kComplex) return false;
  Print print;
  print.data = AddressOf(read);
  print.dtype = DTypeOf(read);
  print.device = DeviceOf(read);
  print.dims = static_cast<size_t>(read.ndim);
  print.first = numbers_.size();
  numbers_.insert(numbers_.end(), read.shape, read.shape + read.ndim);
  if (read.strides != nullptr) {
    numbers_.insert(numbers_.end(), read.strides, read.strides + read.ndim);
  } else {
    numbers_.insert(numbers_.end(), print.dims, 0);
  }
  const bool is_empty = std::find(read.shape, read.shape + read.ndim, 0) != read.shape + read.ndim;
  if (print.data == nullptr && !is_empty) return false;
  print.may_be_negated =
      (read.code == kFloat || read.code == kBfloat) && (read.ndim == 0 || !IsDense(read));
  if (print.may_be_negated && IsNegated(tensor)) return false;
  prints_.push_back(print);
  return true;
}

bool Fingerprint::IsPlain(const PyObject* object) const {
  return std::find(types_.plain.begin(), types_.plain.end(), object->ob_type) != types_.plain.end();
}

bool Fingerprint::SameMemory(nb::handle tensor, const Print& print) const {
  DlTensor read{};
  if (!Read(tensor, &read)) return false;
  if (AddressOf(read) != print.data || DTypeOf(read) != print.dtype ||
      DeviceOf(read) != print.device || static_cast<size_t>(read.ndim) != print.dims) {
    return false;
  }
  const int64_t* const sizes = numbers_.data() + print.first;
  if (!std::equal(read.shape, read.shape + read.ndim, sizes)) return false;
  const int64_t* const strides = sizes + print.dims;
  if (read.strides != nullptr && !std::equal(read.strides, read.strides + read.ndim, strides)) {
    return false;
  }
  return !print.may_be_negated || !IsNegated(tensor);
}

bool Fingerprint::SamePlaced(nb::handle object, const Entry& entry, const Print& print) const {
  if (Py_TYPE(object.ptr()) != types_.placed) return false;
  const nb::object spec = Attribute(object, "_spec");
  if (!spec.is_valid()) return false;
  if (spec.ptr() != entry.spec.ptr() &&
      (!IsEqual(spec, entry.spec) || !IsEqual(OrderOf(spec), entry.order))) {
    return false;
  }
  const nb::object local = Attribute(object, "_local_tensor");
  return local.is_valid() && IsPlain(local.ptr()) && SameMemory(local, print);
}

bool Fingerprint::Same(nb::list objects) const {
  if (!*alive_ || nb::len(objects) != entries_.size()) return false;
  const Print* print = prints_.data();
  for (size_t i = 0; i < entries_.size(); ++i) {
    const Entry& entry = entries_[i];
    // A comparison may have run code that took some away.
    const nb::object object = nb::borrow(PyList_GetItem(objects.ptr(), static_cast<Py_ssize_t>(i)));
    if (!object.is_valid()) {
      PyErr_Clear();
      return false;
    }
    if (entry.stands != nullptr) {
      // Comparisons may have run code of Python's, and that may have dropped what stands here.
      if (!*alive_ || object.ptr() != entry.stands) return false;
      for (size_t k = 0; k < entry.memories.size(); ++k) {
        if (!SameMemory(entry.memories[k], print[k])) return false;
      }
    } else if (entry.spec.is_valid()) {
      if (!SamePlaced(object, entry, *print)) return false;
    } else if (!IsPlain(object.ptr()) || !SameMemory(object, *print)) {
      return false;
    }
    print += entry.prints;
  }
  return *alive_;
}

void BindFingerprints(nb::module_& module) {
  nb::class_<Fingerprint>(module, "Fingerprint",
                          "Where tensors of PyTorch lay, without referring to them.")
      .def("same", &Fingerprint::Same, nb::arg("objects"),
           "Whether these tensors are placed as those were, and lie in the same memory. False may "
           "also mean that it cannot be told.");
  module.def(
      "fingerprint",
      [](nb::list objects, nb::list memories, nb::tuple plain,
         nb::handle placed) -> std::unique_ptr<Fingerprint> {
        Fingerprint::Types types;
        for (const nb::handle type : plain) {
          types.plain.push_back(reinterpret_cast<PyTypeObject*>(type.ptr()));
        }
        if (!placed.is_none()) types.placed = reinterpret_cast<PyTypeObject*>(placed.ptr());
        return Fingerprint::Make(std::move(objects), std::move(memories), types);
      },
      nb::arg("objects"), nb::arg("memories"), nb::arg("plain"), nb::arg("placed") = nb::none(),
      "The fingerprint of `objects`, or None where one cannot be looked at. Objects are of the "
      "types `plain`, or of `placed`, the type of DTensors. An object with a list in `memories` "
      "stands for these tensors; it is known by itself, and has to stand for them as long as it "
      "lives.");
}

}  // namespace sluice::python
