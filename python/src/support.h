// Tools of all parts of the binding: errors, the GIL, owners of memory, the end of Python.
#ifndef SLUICE_PYTHON_SRC_SUPPORT_H_
#define SLUICE_PYTHON_SRC_SUPPORT_H_

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gil.h"

namespace sluice::python {

namespace nb = nanobind;

// Throws what the error factory makes of a status that is not OK. With the GIL.
[[noreturn]] void Raise(const absl::Status& status);
void RaiseIfError(const absl::Status& status);
template <typename T>
T ValueOrRaise(absl::StatusOr<T> value) {
  RaiseIfError(value.status());
  return *std::move(value);
}

// How long ago `start` was, by a clock that does not step.
inline absl::Duration Since(std::chrono::steady_clock::time_point start) {
  return absl::FromChrono(std::chrono::steady_clock::now() - start);
}

// `factory(code, message, ranks, tensor, epoch, is_disagreement)` returns the exception to raise
// for a status.
void SetErrorFactory(nb::object factory);

// "ValueError: text" of an exception that Python code raised. With the GIL.
std::string TextOf(const nb::python_error& error);

// True once the interpreter is about to end: nothing of Python may be touched without the GIL, and
// no destructor does anything any more. Thread: any.
bool Ended();
void SayEnded();

// How often fork() has led to this process, and whether an object was made in this very process.
int64_t ForkCount();
class MadeHere {
 public:
  MadeHere() : count_(ForkCount()) {}
  bool Holds() const { return ForkCount() == count_; }
  // Raises FailedPrecondition in a child that was forked since.
  void Require(const char* what) const;

 private:
  const int64_t count_;
};

// Notes that this process has threads or connections of Sluice's. Raises FailedPrecondition in a
// child of a process that had.
void BeginUse();

// A number that no other thread of this process has or had.
uint64_t ThreadNumber();
// Whether this is Python's main thread, the only one that gets signals.
bool OnMainThread();

// A reference to a Python object that may be dropped on any thread, with the GIL or without. After
// the end of Python, and in forked children, the object is left alone.
using Owner = std::shared_ptr<PyObject>;
Owner Hold(nb::handle object);  // null for None; with the GIL

// State that a Python object refers to: shared, and given up without the GIL, so that its end may
// wait.
template <typename T>
class Ref {
 public:
  explicit Ref(std::shared_ptr<T> state) : state_(std::move(state)) {}
  Ref(Ref&&) noexcept = default;
  Ref(const Ref&) = delete;
  Ref& operator=(const Ref&) = delete;
  Ref& operator=(Ref&&) = delete;
  ~Ref() {
    if (state_ == nullptr) return;
    if (Ended()) {
      new std::shared_ptr<T>(std::move(state_));  // on purpose: its threads may be gone
      return;
    }
    const ReleasedGil released;
    state_.reset();
  }

  T* operator->() const { return state_.get(); }
  const std::shared_ptr<T>& state() const { return state_; }

 private:
  std::shared_ptr<T> state_;
};

// Seconds of Python and durations. None: `none`. Not a number: ValueError.
absl::Duration DurationOf(nb::handle seconds, const char* what, absl::Duration none);

// An array of ctypes' at host memory: its memoryviews are writable, and refer to it.
nb::object ArrayAt(void* data, size_t bytes);
// A writable memoryview of host memory, which keeps `owner`.
nb::object MemoryAt(void* data, size_t bytes, nb::handle owner);

}  // namespace sluice::python

#endif  // SLUICE_PYTHON_SRC_SUPPORT_H_
