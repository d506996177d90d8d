// Giving the GIL away and taking it, also while the interpreter ends.
#ifndef SLUICE_PYTHON_SRC_GIL_H_
#define SLUICE_PYTHON_SRC_GIL_H_

#include <Python.h>
#include <cxxabi.h>

namespace sluice::python {

// Calls `take`, which takes the GIL. CPython before 3.14 ends a thread that asks for the GIL once
// the interpreter has ended: it unwinds the thread's stack. That would meet a destructor or the
// beginning of a thread, and end the process with SIGABRT. Such a thread stays here instead: the
// process is about to end without it.
template <typename Take>
auto TakeGil(Take take) -> decltype(take()) {
  try {
    return take();
  } catch (const abi::__forced_unwind&) {
    while (true) pause();
  }
}

// Without the GIL as long as it lives. Made and destroyed by one thread, which has the GIL before.
class ReleasedGil {
 public:
  ReleasedGil() : state_(PyEval_SaveThread()) {}
  ~ReleasedGil() {
    TakeGil([this] { PyEval_RestoreThread(state_); });
  }
  ReleasedGil(const ReleasedGil&) = delete;
  ReleasedGil& operator=(const ReleasedGil&) = delete;

 private:
  PyThreadState* const state_;
};

// With the GIL as long as it lives. Thread: any one, whether it is Python's or not.
class TakenGil {
 public:
  TakenGil() : state_(TakeGil([] { return PyGILState_Ensure(); })) {}
  ~TakenGil() { PyGILState_Release(state_); }
  TakenGil(const TakenGil&) = delete;
  TakenGil& operator=(const TakenGil&) = delete;

 private:
  const PyGILState_STATE state_;
};

// Calls `call` with the GIL, on any thread. Python code in the call may give the GIL away, and ask
// for it again when the interpreter has ended: then the thread stays here, too.
template <typename Call>
auto WithGil(Call call) -> decltype(call()) {
  const TakenGil taken;
  return TakeGil(call);
}

}  // namespace sluice::python

#endif  // SLUICE_PYTHON_SRC_GIL_H_
