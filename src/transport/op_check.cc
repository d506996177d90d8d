// Checks and messages that all transports share.
#include "transport/op_check.h"

#include "absl/strings/str_cat.h"
#include "sluice/fabric.h"
#include "tensor/check.h"

namespace sluice {

void CheckOps(absl::Span<const TransportOp> ops, int rank, int size,
              const TransportTraits& traits) {
  for (const TransportOp& op : ops) {
    SLUICE_CHECK(op.peer >= 0 && op.peer < size, "the peer is not a rank of the fabric");
    SLUICE_CHECK(op.peer != rank || traits.takes_own_rank, "a rank cannot send to itself");
    SLUICE_CHECK(op.tag >= 0 && op.tag <= kMaxTransportTag, "the tag is out of range");
    SLUICE_CHECK(op.bytes <= kMaxTransportBytes, "the message is too long");
    SLUICE_CHECK(op.data != nullptr || op.bytes == 0, "the message has no memory");
    SLUICE_CHECK(op.row_bytes == 0 || traits.takes_rows, "the transport takes no rows");
    SLUICE_CHECK(op.row_bytes == 0 || op.bytes % op.row_bytes == 0, "the message has half a row");
  }
}

absl::Status CheckCapacity(size_t ops, int outstanding, int capacity) {
  if (ops + static_cast<size_t>(outstanding) <= static_cast<size_t>(capacity)) {
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(absl::StrCat("the transport has room for ", capacity,
                                                   " operations: ", outstanding,
                                                   " are outstanding, ", ops, " more were asked"));
}

std::string DescribeOp(const TransportOp& op, int rank) {
  const bool send = op.kind == TransportOp::Kind::kSend;
  return absl::StrCat(send ? "send of " : "receive of ", op.bytes, " bytes from rank ",
                      send ? rank : op.peer, " to rank ", send ? op.peer : rank, ", tag ", op.tag);
}

absl::Status LengthError(const TransportOp& receive, int rank, size_t message_bytes) {
  return absl::DataLossError(
      absl::StrCat(DescribeOp(receive, rank), ": the message has ", message_bytes, " bytes"));
}

absl::Status WithdrawnError(const TransportOp& receive, int rank) {
  return absl::CancelledError(absl::StrCat(DescribeOp(receive, rank), ": withdrawn"));
}

void CheckPost(int dst, size_t bytes, int rank, int size) {
  SLUICE_CHECK(dst >= 0 && dst < size, "the destination is not a rank of the fabric");
  SLUICE_CHECK(dst != rank, "a rank cannot post to itself");
  SLUICE_CHECK(bytes <= Fabric::kMaxPostBytes, "the post is too long");
}

absl::Status PostRefusal(int dst, int pending) {
  return absl::ResourceExhaustedError(
      absl::StrCat(pending, " posts to rank ", dst, " have not left yet"));
}

absl::Status RecordLengthError(int src, size_t bytes, int rank, size_t own_bytes) {
  return absl::DataLossError(absl::StrCat("the record of rank ", src, " has ", bytes,
                                          " bytes, that of rank ", rank, " has ", own_bytes));
}

}  // namespace sluice
