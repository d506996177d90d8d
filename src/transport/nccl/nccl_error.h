// NCCL's results as absl::Status: the one place that knows them.
#ifndef SLUICE_SRC_TRANSPORT_NCCL_NCCL_ERROR_H_
#define SLUICE_SRC_TRANSPORT_NCCL_NCCL_ERROR_H_

#include <nccl.h>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "tensor/error_text.h"

namespace sluice {

// "ncclGroupEnd failed: remote process exited (ncclRemoteError): <what NCCL said last>; rank 2 of
// 4". `result` is an error. `comm` may be null. `what` says whose call it was.
absl::Status NcclError(ncclResult_t result, absl::string_view call, ncclComm_t comm,
                       const ErrorText& what);

// Neither an error, nor anything to wait for or not.
inline bool IsNcclError(ncclResult_t result) {
  return result != ncclSuccess && result != ncclInProgress;
}

}  // namespace sluice

#endif  // SLUICE_SRC_TRANSPORT_NCCL_NCCL_ERROR_H_
