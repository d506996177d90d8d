// A detached thread for a call that may not come back.
#include "transport/nccl/nccl_ending.h"

#include <pthread.h>
#include <signal.h>

#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "device/cuda/cuda_current.h"

namespace sluice {

struct NcclEnding::Handover {
  enum class State { kIdle, kUnderWay, kOver };

  std::mutex mutex;
  std::condition_variable changed;
  State state = State::kIdle;  // kOver from kIdle: there is no call to make
  ncclResult_t (*call)(ncclComm_t) = nullptr;
  ncclComm_t comm = nullptr;
  int ordinal = 0;
};

absl::StatusOr<std::unique_ptr<NcclEnding>> NcclEnding::Create() {
  auto handover = std::make_shared<Handover>();
  absl::Status status;
  // Signals go to the caller's threads.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    std::thread([handover] { Run(handover.get()); }).detach();
  } catch (const std::system_error& error) {
    status = absl::ResourceExhaustedError(
        absl::StrCat("no thread for the end of an NCCL communicator: ", error.what()));
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (!status.ok()) return status;
  return std::unique_ptr<NcclEnding>(new NcclEnding(std::move(handover)));
}

NcclEnding::NcclEnding(std::shared_ptr<Handover> handover) : handover_(std::move(handover)) {}

NcclEnding::~NcclEnding() {
  const std::lock_guard<std::mutex> lock(handover_->mutex);
  if (handover_->state == Handover::State::kIdle) handover_->state = Handover::State::kOver;
  handover_->changed.notify_one();
}

void NcclEnding::Run(Handover* handover) {
  std::unique_lock<std::mutex> lock(handover->mutex);
  handover->changed.wait(lock, [handover] { return handover->state != Handover::State::kIdle; });
  if (handover->state == Handover::State::kOver) return;
  lock.unlock();
  {
    // The call is made in any case. Its result is nobody's: there is no communicator any more.
    const CurrentCudaDevice current(handover->ordinal);
    static_cast<void>(handover->call(handover->comm));
  }
  lock.lock();
  handover->state = Handover::State::kOver;
}

void NcclEnding::Start(ncclResult_t (*call)(ncclComm_t), ncclComm_t comm, int ordinal) {
  const std::lock_guard<std::mutex> lock(handover_->mutex);
  handover_->state = Handover::State::kUnderWay;
  handover_->call = call;
  handover_->comm = comm;
  handover_->ordinal = ordinal;
  handover_->changed.notify_one();
}

bool NcclEnding::over() const {
  const std::lock_guard<std::mutex> lock(handover_->mutex);
  return handover_->state != Handover::State::kUnderWay;
}

}  // namespace sluice
