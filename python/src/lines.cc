// Lines of the C++ library, for Python's logging.
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "gil.h"
#include "session.h"
#include "support.h"
#include "transport/say_once.h"

namespace sluice::python {
namespace {

PyObject* logger = nullptr;  // a function of one text; kept for ever

// Lines that nobody has logged yet. A thread of its own logs them: who says a line may hold locks,
// for which a thread with the GIL may wait. Never destroyed.
struct Lines {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::string> waiting;
  int64_t thread_at = -1;   // the fork count of the process that has the thread
  int64_t in_hand_at = -1;  // the same, while that thread logs lines
};

// How long the end of Python waits for a line in hand. A handler may never come back.
constexpr std::chrono::seconds kLastLines(5);

Lines* const lines = new Lines;

bool Take(std::string* line) {
  const std::lock_guard<std::mutex> lock(lines->mutex);
  if (lines->waiting.empty()) return false;
  *line = std::move(lines->waiting.front());
  lines->waiting.pop_front();
  return true;
}

// With the GIL.
void LogWaiting() {
  const nb::handle log(logger);
  std::string line;
  while (Take(&line)) {
    try {
      log(nb::steal(
          PyUnicode_DecodeUTF8(line.data(), static_cast<Py_ssize_t>(line.size()), "replace")));
    } catch (nb::python_error& error) {
      // Python's threads are silent about it, too.
      if (!error.matches(PyExc_SystemExit)) error.discard_as_unraisable("a handler of logging");
    }
  }
}

void Loop() {
  const int64_t made_at = ForkCount();
  while (true) {
    {
      std::unique_lock<std::mutex> lock(lines->mutex);
      lines->changed.wait(lock, [] { return !lines->waiting.empty(); });
      lines->in_hand_at = ForkCount();
    }
    if (Ended()) return;
    WithGil(LogWaiting);
    // A handler has forked: the child has this thread alone, and ends with it.
    if (ForkCount() != made_at) return;
    const std::lock_guard<std::mutex> lock(lines->mutex);
    lines->in_hand_at = -1;
    lines->changed.notify_all();
  }
}

void Log(absl::string_view text) {
  if (Ended()) return;
  const std::lock_guard<std::mutex> lock(lines->mutex);
  lines->waiting.emplace_back(text);
  lines->changed.notify_all();
  if (std::exchange(lines->thread_at, ForkCount()) == ForkCount()) return;
  try {
    std::thread(Loop).detach();
  } catch (const std::system_error&) {
    lines->thread_at = -1;  // the end of Python logs the line
  }
}

}  // namespace

void LogLastLines() {
  if (logger == nullptr) return;
  LogWaiting();
  const ReleasedGil released;  // which the line in hand needs
  std::unique_lock<std::mutex> lock(lines->mutex);
  lines->changed.wait_for(lock, kLastLines, [] { return lines->in_hand_at != ForkCount(); });
}

void BindLines(nb::module_& module) {
  module.def(
      "set_logger",
      [](nb::object log) {
        PyObject* const old = std::exchange(logger, log.release().ptr());
        Py_XDECREF(old);
        SetLineSink(&Log);
      },
      nb::arg("log"),
      "log(text) gets the lines that the C++ library would write to stderr, on a thread of their "
      "own.");
}

}  // namespace sluice::python
