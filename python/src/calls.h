// Calls that may wait: without the GIL, and so that signals of Python are heard meanwhile.
#ifndef SLUICE_PYTHON_SRC_CALLS_H_
#define SLUICE_PYTHON_SRC_CALLS_H_

#include <nanobind/nanobind.h>

#include <atomic>
#include <exception>
#include <memory>
#include <optional>
#include <utility>

#include "gil.h"
#include "support.h"

namespace sluice::python {

// Makes the calls of one session or world, one after the other.
//
// Python's main thread gets Ctrl-C. So a thread of the desk's own carries out its calls, while the
// main thread looks for signals. When a signal raises, the call is left to the desk's thread: it is
// pending, and the next call waits for its end. The result of a pending call is dropped, with all
// that its closure holds. Other threads make their calls themselves.
//
// Thread: one at a time, with the GIL. Destroyed without waiting, with the GIL or without.
class Desk {
 public:
  Desk();
  ~Desk();
  Desk(const Desk&) = delete;
  Desk& operator=(const Desk&) = delete;

  // Runs work() without the GIL. Objects that work captures have to outlive this call by
  // themselves.
  template <typename Work>
  auto Call(Work work) -> decltype(work()) {
    using Result = decltype(work());
    Settle();
    if (!OnMainThread()) {
      const InCall in_call(this);
      const ReleasedGil released;
      return work();
    }
    struct Box {
      std::optional<Result> result;
      std::exception_ptr thrown;
    };
    auto box = std::make_shared<Box>();
    // The closure goes with the job, the result with its last owner.
    Post([box, work = std::move(work)]() mutable {
      try {
        box->result.emplace(work());
      } catch (...) {
        box->thrown = std::current_exception();
      }
    });
    Settle();
    if (box->thrown != nullptr) std::rethrow_exception(box->thrown);
    return *std::move(box->result);
  }

  // The same on this thread itself, for work that does not wait for long.
  template <typename Work>
  auto CallHere(Work&& work) -> decltype(work()) {
    Settle();
    const InCall in_call(this);
    const ReleasedGil released;
    return work();
  }

  // Waits until no call is pending. Raises what a signal's handler raises.
  void Settle();
  // False while a call is pending, or another thread is in one.
  bool Idle() const;

 private:
  struct Shared;
  struct Job {
    virtual ~Job() = default;
    virtual void Run() = 0;
  };
  template <typename Work>
  struct JobOf : Job {
    explicit JobOf(Work given) : work(std::move(given)) {}
    void Run() override { work(); }
    Work work;
  };
  class InCall {
   public:
    explicit InCall(Desk* desk) : desk_(desk) { ++desk_->in_call_; }
    ~InCall() { --desk_->in_call_; }
    InCall(const InCall&) = delete;
    InCall& operator=(const InCall&) = delete;

   private:
    Desk* const desk_;
  };

  template <typename Work>
  void Post(Work work) {
    PostJob(std::make_unique<JobOf<Work>>(std::move(work)));
  }
  void PostJob(std::unique_ptr<Job> job);

  std::atomic<int> in_call_ = 0;
  const std::shared_ptr<Shared> shared_;
};

}  // namespace sluice::python

#endif  // SLUICE_PYTHON_SRC_CALLS_H_
