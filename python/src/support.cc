// Errors, the GIL, owners of memory, and the end of Python.
#include "support.h"

#include <pthread.h>

#include <atomic>
#include <cmath>

#include "sluice/error.h"

namespace sluice::python {
namespace {

PyObject* factory = nullptr;  // kept for ever
std::atomic<bool> ended = false;
std::atomic<int64_t> forks = 0;
std::atomic<bool> used = false;
std::atomic<bool> used_by_parent = false;

void InChild() {
  forks.fetch_add(1, std::memory_order_relaxed);
  if (used.load(std::memory_order_relaxed)) used_by_parent.store(true, std::memory_order_relaxed);
}

}  // namespace

void Raise(const absl::Status& status) {
  const std::string message(status.message());
  if (factory == nullptr) {
    PyErr_SetString(PyExc_RuntimeError, status.ToString().c_str());
    throw nb::python_error();
  }
  const ErrorFields fields = FieldsOf(status);
  nb::list ranks;
  for (const int rank : fields.ranks) ranks.append(rank);
  nb::object tensor = nb::none();
  if (fields.tensor) {
    // A name may be cut, or be no text.
    tensor = nb::steal(PyUnicode_DecodeUTF8(
        fields.tensor->data(), static_cast<Py_ssize_t>(fields.tensor->size()), "replace"));
    if (!tensor.is_valid()) throw nb::python_error();
  }
  const nb::object epoch = fields.epoch ? nb::cast(*fields.epoch) : nb::none();
  const nb::object error = nb::handle(factory)(static_cast<int>(status.code()), message, ranks,
                                               tensor, epoch, fields.is_disagreement);
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())), error.ptr());
  throw nb::python_error();
}

void RaiseIfError(const absl::Status& status) {
  if (!status.ok()) Raise(status);
}

void SetErrorFactory(nb::object made_by) {
  PyObject* const old = factory;
  factory = made_by.is_none() ? nullptr : made_by.release().ptr();
  Py_XDECREF(old);
}

std::string TextOf(const nb::python_error& error) {
  const std::string type = nb::cast<std::string>(nb::str(error.type().attr("__name__")));
  std::string text;
  try {
    text = nb::cast<std::string>(nb::str(error.value()));
  } catch (const std::exception&) {
    PyErr_Clear();
  }
  return text.empty() ? type : type + ": " + text;
}

bool Ended() { return ended.load(std::memory_order_acquire); }
void SayEnded() { ended.store(true, std::memory_order_release); }

int64_t ForkCount() {
  static const int registered = pthread_atfork(nullptr, nullptr, &InChild);
  static_cast<void>(registered);
  return forks.load(std::memory_order_relaxed);
}

void MadeHere::Require(const char* what) const {
  if (Holds()) return;
  Raise(absl::FailedPreconditionError(
      std::string("the ") + what +
      " belongs to the process that made it, and this is a child that was forked: it has none of "
      "its threads, and shares its connections. Make one in the child, which is started by spawn, "
      "or use it in the parent alone (a DataLoader with num_workers=0)"));
}

void BeginUse() {
  ForkCount();
  if (used_by_parent.load(std::memory_order_relaxed)) {
    Raise(absl::FailedPreconditionError(
        "this process was forked from one that uses Sluice, and has parts of its connections: "
        "start processes by \"spawn\", or before the parent joins a world"));
  }
  used.store(true, std::memory_order_relaxed);
}

uint64_t ThreadNumber() {
  static std::atomic<uint64_t> threads = 0;
  thread_local const uint64_t number = ++threads;
  return number;
}

bool OnMainThread() {
  static PyObject* const main_thread =
      nb::module_::import_("threading").attr("main_thread").inc_ref().ptr();
  const nb::object ident = nb::handle(main_thread)().attr("ident");
  return !ident.is_none() && nb::cast<unsigned long>(ident) == PyThread_get_thread_ident();
}

Owner Hold(nb::handle object) {
  if (!object.is_valid() || object.is_none()) return nullptr;
  const int64_t made = ForkCount();
  return {object.inc_ref().ptr(), [made](PyObject* held) {
            if (Ended() || ForkCount() != made) return;
            WithGil([held] { Py_DECREF(held); });
          }};
}

absl::Duration DurationOf(nb::handle seconds, const char* what, absl::Duration none) {
  if (!seconds.is_valid() || seconds.is_none()) return none;
  double value = 0;
  if (!nb::try_cast(seconds, value) || std::isnan(value)) {
    throw nb::type_error((std::string(what) + " has to be seconds, or None").c_str());
  }
  return absl::Seconds(value);
}

// The stable ABI of 3.10 has no buffers of one's own.
nb::object ArrayAt(void* data, size_t bytes) {
  const nb::object type = nb::module_::import_("ctypes").attr("c_ubyte") * nb::cast(bytes);
  return bytes == 0 ? type() : type.attr("from_address")(reinterpret_cast<uintptr_t>(data));
}

nb::object MemoryAt(void* data, size_t bytes, nb::handle owner) {
  const nb::object array = ArrayAt(data, bytes);
  array.attr("_sluice_owner") = owner;
  const nb::object view = nb::steal(PyMemoryView_FromObject(array.ptr()));
  if (!view.is_valid()) throw nb::python_error();
  return view.attr("cast")("B");
}

}  // namespace sluice::python
