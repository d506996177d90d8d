// MPI's error codes as absl::Status: the one place that knows them.
#ifndef SLUICE_SRC_TRANSPORT_MPI_MPI_ERROR_H_
#define SLUICE_SRC_TRANSPORT_MPI_MPI_ERROR_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "tensor/error_text.h"

namespace sluice {

// "MPI_Isend failed: MPI_ERR_COMM: invalid communicator; send of 8 bytes from rank 0 to rank 1".
// `code` is what `call` returned, or what it left in a status; not MPI_SUCCESS. `what` says which
// operation it was and between which ranks.
absl::Status MpiError(int code, absl::string_view call, const ErrorText& what);

// True if `code` says that a rank has ended, as an MPI does that goes on after that.
bool IsEndOfRank(int code);

// True if `code` says that each request has an error of its own in its status.
bool IsErrorInStatus(int code);

}  // namespace sluice

#endif  // SLUICE_SRC_TRANSPORT_MPI_MPI_ERROR_H_
