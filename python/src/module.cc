// The module sluice._sluice: private, low-level, without policy. The package sluice is for users.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <atomic>

#include "fingerprints.h"
#include "session.h"
#include "support.h"
#include "values.h"

namespace sluice::python {
namespace {

void AtExit() {
  SessionState::CloseAll();
  SayEnded();
}

}  // namespace

// Behind PyInit__sluice, which Python calls.
NB_MODULE(_sluice_body, module) {
  // Before anything that may be forked.
  ForkCount();
  nb::set_leak_warnings(false);
  module.doc() = "The C++ library as the package sluice uses it.";
  module.def(
      "version", [] { return SLUICE_VERSION; }, "The version of Sluice, as \"0.2.0\".");
  module.def(
      "set_error_factory", [](nb::object factory) { SetErrorFactory(std::move(factory)); },
      nb::arg("factory").none(),
      "factory(code, message) makes the exceptions that statuses are raised as.");
  module.def(
      "forbid_in_child", [] { ForkCount(); },
      "For os.register_at_fork. The module notices forks by itself.");
  module.def(
      "memory_at",
      [](uintptr_t address, size_t bytes, nb::handle owner) {
        return MemoryAt(reinterpret_cast<void*>(address), bytes, owner);
      },
      nb::arg("ptr"), nb::arg("nbytes"), nb::arg("owner").none(),
      "A writable memoryview of host memory, which keeps `owner`.");
  BindValues(module);
  BindSession(module);
  BindTransfers(module);
  BindStreams(module);
  BindWorlds(module);
  BindChecksums(module);
  BindFingerprints(module);
  nb::module_::import_("atexit").attr("register")(nb::cpp_function([] { AtExit(); }));
}

// nanobind registers types once in a process. A second module, of another interpreter or after the
// first one has been removed from sys.modules, would leave the first without.
extern "C" NB_EXPORT PyObject* PyInit__sluice() {
  static std::atomic<bool> loaded = false;
  if (PyInterpreterState_GetID(PyInterpreterState_Get()) != 0 || loaded.exchange(true)) {
    PyErr_SetString(PyExc_ImportError,
                    "sluice is loaded once in a process: neither in another interpreter, nor again "
                    "after it has been removed from sys.modules");
    return nullptr;
  }
  return PyInit__sluice_body();
}

}  // namespace sluice::python
