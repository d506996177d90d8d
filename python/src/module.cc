// The module sluice._sluice: private, low-level, without policy. The package sluice is for users.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <atomic>
#include <vector>

#include "fingerprints.h"
#include "session.h"
#include "support.h"
#include "values.h"

namespace sluice::python {
namespace {

// nanobind registers types once in a process. A second module, of another interpreter or after the
// first one has been removed from sys.modules, would leave the first without.
int ForbidSecond(PyObject* /*module*/) {
  static std::atomic<bool> loaded = false;
  if (PyInterpreterState_GetID(PyInterpreterState_Get()) == 0 && !loaded.exchange(true)) return 0;
  PyErr_SetString(PyExc_ImportError,
                  "sluice is loaded once in a process: neither in another interpreter, nor again "
                  "after it has been removed from sys.modules");
  return -1;
}

void AtExit() {
  SessionState::CloseAll();
  LogLastLines();
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
      "factory(code, message, ranks, tensor, epoch, is_disagreement) makes the exceptions that "
      "statuses are raised as.");
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
  BindReads(module);
  BindStreams(module);
  BindWorlds(module);
  BindChecksums(module);
  BindLines(module);
  BindFacts(module);
  BindFingerprints(module);
#ifdef SLUICE_PYTHON_FAKE_CUDA
  BindFakeCuda(module);
#endif
  nb::module_::import_("atexit").attr("register")(nb::cpp_function([] { AtExit(); }));
}

// ForbidSecond comes before nanobind's own step, which already changes what the first module has.
// It is a step of its own: CPython 3.13 calls this function in the main interpreter, whichever one
// imports. An error made here would be freed by an interpreter that has not allocated it.
extern "C" NB_EXPORT PyObject* PyInit__sluice() {
  static std::vector<PyModuleDef_Slot> steps;  // ForbidSecond's, and nanobind's
  PyObject* const definition = PyInit__sluice_body();
  if (definition == nullptr || !steps.empty()) return definition;
  auto* const module = reinterpret_cast<PyModuleDef*>(definition);
  steps.push_back({Py_mod_exec, reinterpret_cast<void*>(&ForbidSecond)});
  for (const PyModuleDef_Slot* step = module->m_slots; step->slot != 0; ++step) {
    steps.push_back(*step);
  }
  steps.push_back({0, nullptr});
  module->m_slots = steps.data();
  return definition;
}

}  // namespace sluice::python
