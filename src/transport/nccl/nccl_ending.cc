// A detached thread for a call that may not come back.
#include "transport/nccl/nccl_ending.h"

#include <pthread.h>
#include <signal.h>

#include <system_error>
#include <thread>

#include "device/cuda/cuda_current.h"

namespace sluice {

void NcclEnding::Start(ncclResult_t (*call)(ncclComm_t), ncclComm_t comm, int ordinal) {
  under_way_ = std::make_shared<std::atomic<bool>>(true);
  // Its result is nobody's: there is no communicator any more.
  const auto end = [call, comm, ordinal, under_way = under_way_] {
    {
      // The call is made in any case.
      const CurrentCudaDevice current(ordinal);
      static_cast<void>(call(comm));
    }
    under_way->store(false);
  };
  // Signals go to the caller's threads.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    std::thread(end).detach();
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  } catch (const std::system_error&) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    end();  // better late than never
  }
}

}  // namespace sluice
