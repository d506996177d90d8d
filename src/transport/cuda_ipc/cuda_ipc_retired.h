// Events of transports that have ended, kept a while for ranks that have yet to open them.
#ifndef SLUICE_SRC_TRANSPORT_CUDA_IPC_CUDA_IPC_RETIRED_H_
#define SLUICE_SRC_TRANSPORT_CUDA_IPC_CUDA_IPC_RETIRED_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <vector>

namespace sluice {

// Takes interprocess events of GPU `ordinal` whose transport ends. A receiver's operation has ended
// as soon as its copy is ordered. The receiver may then close its session and go. The sender hears
// later which event to wait for, and must find it. The events are destroyed once kRetiredEventsMax
// others have been retired after them. Otherwise they end with the process, which other ranks
// outwait in MPI_Finalize. Any thread.
inline constexpr size_t kRetiredEventsMax = 1024;
void RetireCudaEvents(int ordinal, const std::vector<cudaEvent_t>& events);

}  // namespace sluice

#endif  // SLUICE_SRC_TRANSPORT_CUDA_IPC_CUDA_IPC_RETIRED_H_
