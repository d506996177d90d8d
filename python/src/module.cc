// The module sluice._sluice: private, low-level, without policy. The package sluice is for users.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

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

NB_MODULE(_sluice, module) {
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
  nb::module_::import_("atexit").attr("register")(nb::cpp_function([] { AtExit(); }));
}

}  // namespace sluice::python
