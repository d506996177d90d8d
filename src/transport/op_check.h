// Checks operations for every transport, and names in an error what is wrong, for its fabric, too.
#ifndef SLUICE_SRC_TRANSPORT_OP_CHECK_H_
#define SLUICE_SRC_TRANSPORT_OP_CHECK_H_

#include <cstddef>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "sluice/transport.h"
#include "tensor/error_text.h"

namespace sluice {

// Aborts if an operation of `ops` is none that `rank` of `size` may start on such a transport.
void CheckOps(absl::Span<const TransportOp> ops, int rank, int size, const TransportTraits& traits);

// How many outstanding operations these come to: each send that a receive folds is one beside it.
size_t CountOperations(absl::Span<const TransportOp> ops);

// ResourceExhausted with the breakdown, if `ops` more operations do not fit.
absl::Status CheckCapacity(size_t ops, int outstanding, int capacity);

// "send of 1048576 bytes from rank 0 to rank 3, tag 7"; of a receive that folds also of how many
// contributions: "receive of 4096 bytes from rank 3 to rank 0, tag 7, in a fold of 2".
ErrorText DescribeOp(const TransportOp& op, int rank);

// The DataLoss event of a receive that met a message of another length.
absl::Status LengthError(const TransportOp& receive, int rank, size_t message_bytes);

// The event of a receive that has been taken back.
absl::Status WithdrawnError(const TransportOp& receive, int rank);

// The event of a send between ranks that have parted.
absl::Status PartedError(const TransportOp& send, int rank);

// Aborts if `rank` of `size` may not post a record of `bytes` to `dst`.
void CheckPost(int dst, size_t bytes, int rank, int size);

// The error of a post to a rank that `pending` others have not left for.
absl::Status PostRefusal(int dst, int pending);

// The error of an all-gather in which rank `src` sent `bytes`, and this rank `own_bytes`.
absl::Status RecordLengthError(int src, size_t bytes, int rank, size_t own_bytes);

}  // namespace sluice

#endif  // SLUICE_SRC_TRANSPORT_OP_CHECK_H_
