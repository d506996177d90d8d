// Checks and messages that all transports share.
#include "transport/op_check.h"

#include "absl/strings/str_cat.h"
#include "sluice/fabric.h"
#include "sluice/tensor.h"
#include "tensor/cast.h"
#include "tensor/check.h"
#include "tensor/error_text.h"

namespace sluice {
namespace {

bool IsSameSend(const FoldSource& source, const FoldSource& other) {
  return source.peer == other.peer && source.tag == other.tag;
}

void CheckRemoteSource(const FoldSource& source, int rank, int size) {
  SLUICE_CHECK(source.peer < size, "a contribution is of no rank of the fabric");
  SLUICE_CHECK(source.peer != rank, "what this rank contributes is no message");
  SLUICE_CHECK(source.tag >= 0 && source.tag <= kMaxTransportTag, "the tag is out of range");
}

void CheckLocalSource(const FoldSource& source, size_t bytes, size_t element_bytes) {
  SLUICE_CHECK(source.data != nullptr || bytes == 0, "the contribution has no memory");
  if (source.row_bytes == 0) return;
  SLUICE_CHECK(bytes % source.row_bytes == 0, "the contribution has half a row");
  SLUICE_CHECK(source.row_bytes % element_bytes == 0, "a row ends inside an element");
}

void CheckFold(const TransportOp& op, int rank, int size) {
  const Fold& fold = *op.fold;
  const auto element_bytes = static_cast<size_t>(DTypeBytes(fold.dtype));
  SLUICE_CHECK(op.kind == TransportOp::Kind::kReceive, "only a receive folds");
  SLUICE_CHECK(ReductionExists(fold.dtype), "elements of this type are not reduced");
  SLUICE_CHECK(op.bytes % element_bytes == 0, "the fold has half an element");
  SLUICE_CHECK(op.row_bytes % element_bytes == 0, "a row ends inside an element");
  SLUICE_CHECK(fold.sources.size() >= 2, "there is nothing to fold");
  const FoldSource* first = nullptr;
  for (const FoldSource& source : fold.sources) {
    if (source.peer < 0) {
      CheckLocalSource(source, op.bytes, element_bytes);
      continue;
    }
    CheckRemoteSource(source, rank, size);
    if (first == nullptr) first = &source;
    for (const FoldSource* other = first; other != &source; ++other) {
      SLUICE_CHECK(!IsSameSend(*other, source), "a fold has one message twice");
    }
  }
  SLUICE_CHECK(first != nullptr, "a fold without messages");
  SLUICE_CHECK(op.peer == first->peer && op.tag == first->tag, "a fold is named by its first peer");
}

}  // namespace

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
    if (op.fold == nullptr) continue;
    SLUICE_CHECK(traits.takes_folds, "the transport does not fold");
    CheckFold(op, rank, size);
  }
}

size_t CountOperations(absl::Span<const TransportOp> ops) {
  size_t count = ops.size();
  for (const TransportOp& op : ops) {
    if (op.fold == nullptr) continue;
    for (const FoldSource& source : op.fold->sources) count += source.peer >= 0 ? 1 : 0;
  }
  return count;
}

absl::Status CheckCapacity(size_t ops, int outstanding, int capacity) {
  if (ops + static_cast<size_t>(outstanding) <= static_cast<size_t>(capacity)) {
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(absl::StrCat("the transport has room for ", capacity,
                                                   " operations: ", outstanding,
                                                   " are outstanding, ", ops, " more were asked"));
}

ErrorText DescribeOp(const TransportOp& op, int rank) {
  const bool send = op.kind == TransportOp::Kind::kSend;
  return ErrorText(send ? "send of " : "receive of ", op.bytes, " bytes from ",
                   RankInWords(send ? rank : op.peer), " to ", RankInWords(send ? op.peer : rank),
                   ", tag ", op.tag,
                   op.fold == nullptr ? std::string()
                                      : absl::StrCat(", in a fold of ", op.fold->sources.size()));
}

absl::Status LengthError(const TransportOp& receive, int rank, size_t message_bytes) {
  return MakeError(absl::StatusCode::kDataLoss, DescribeOp(receive, rank), ": the message has ",
                   message_bytes, " bytes");
}

absl::Status WithdrawnError(const TransportOp& receive, int rank) {
  return MakeError(absl::StatusCode::kCancelled, DescribeOp(receive, rank), ": withdrawn");
}

absl::Status PartedError(const TransportOp& send, int rank) {
  return MakeError(absl::StatusCode::kCancelled, DescribeOp(send, rank),
                   ": its receiver has parted from the others");
}

void CheckPost(int dst, size_t bytes, int rank, int size) {
  SLUICE_CHECK(dst >= 0 && dst < size, "the destination is not a rank of the fabric");
  SLUICE_CHECK(dst != rank, "a rank cannot post to itself");
  SLUICE_CHECK(bytes <= Fabric::kMaxPostBytes, "the post is too long");
}

absl::Status PostRefusal(int dst, int pending) {
  return MakeError(absl::StatusCode::kResourceExhausted, pending, " posts to ", RankInWords(dst),
                   " have not left yet");
}

absl::Status RecordLengthError(int src, size_t bytes, int rank, size_t own_bytes) {
  return MakeError(absl::StatusCode::kDataLoss, "the record of ", RankInWords(src), " has ", bytes,
                   " bytes, that of ", RankInWords(rank), " has ", own_bytes);
}

}  // namespace sluice
