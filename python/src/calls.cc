// The desk's own thread, and looking for signals while it works.
#include "calls.h"

#include <pthread.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>

namespace sluice::python {
namespace {

// How long Ctrl-C may take to be heard.
constexpr std::chrono::milliseconds kBetweenLooks{50};

}  // namespace

// Outlives the desk while its thread works.
struct Desk::Shared {
  std::mutex mutex;
  std::condition_variable changed;
  std::unique_ptr<Job> job;  // posted, and not yet begun
  bool busy = false;         // from PostJob until the job has been carried out and destroyed
  bool stop = false;
  bool has_thread = false;

  void Loop() {
    std::unique_lock<std::mutex> lock(mutex);
    while (true) {
      changed.wait(lock, [this] { return job != nullptr || stop; });
      if (job == nullptr) return;
      std::unique_ptr<Job> now = std::move(job);
      lock.unlock();
      now->Run();
      now.reset();
      lock.lock();
      busy = false;
      changed.notify_all();
    }
  }
};

Desk::Desk() : shared_(std::make_shared<Shared>()) {}

Desk::~Desk() {
  const std::lock_guard<std::mutex> lock(shared_->mutex);
  shared_->stop = true;
  shared_->changed.notify_all();
}

void Desk::PostJob(std::unique_ptr<Job> job) {
  const std::lock_guard<std::mutex> lock(shared_->mutex);
  if (!shared_->has_thread) {
    try {
      std::thread thread([shared = shared_] { shared->Loop(); });
      pthread_setname_np(thread.native_handle(), "sluice-python");
      thread.detach();
    } catch (const std::system_error& error) {
      Raise(absl::ResourceExhaustedError(std::string("no thread can be made: ") + error.what()));
    }
    shared_->has_thread = true;
  }
  shared_->job = std::move(job);
  shared_->busy = true;
  shared_->changed.notify_all();
}

void Desk::Settle() {
  const std::shared_ptr<Shared> shared = shared_;
  while (true) {
    bool busy = false;
    {
      std::unique_lock<std::mutex> lock(shared->mutex, std::defer_lock);
      if (lock.try_lock() && !shared->busy) return;
    }
    {
      const ReleasedGil released;
      std::unique_lock<std::mutex> lock(shared->mutex);
      busy = !shared->changed.wait_for(lock, kBetweenLooks, [&] { return !shared->busy; });
    }
    if (!busy) return;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }
}

bool Desk::Idle() const {
  if (in_call_ != 0) return false;
  const std::lock_guard<std::mutex> lock(shared_->mutex);
  return !shared_->busy;
}

}  // namespace sluice::python
