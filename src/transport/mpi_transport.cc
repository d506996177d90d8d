// Buckets as non-blocking MPI messages.
#include "transport/mpi_transport.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tensor/check.h"
#include "transport/mpi_error.h"
#include "transport/op_check.h"

namespace sluice {

namespace {

// Transfers have few kinds of rows. Types in use outlive their being freed.
constexpr size_t kTypesMax = 1024;

}  // namespace

MpiTransport::~MpiTransport() {
  if (MpiIsUsable()) FreeTypes();
  if (active_ == 0 || !MpiIsUsable()) return;
  for (int i = 0; i < active_; ++i) {
    const size_t slot = static_cast<size_t>(i);
    if (ops_[slot].kind == TransportOp::Kind::kReceive) WithdrawReceive(&requests_[slot]);
  }
  comm_->Abandon();
}

absl::Status MpiTransport::Reserve(int capacity) {
  SLUICE_CHECK(outstanding() == 0, "Reserve with operations outstanding");
  if (capacity <= capacity_) return absl::OkStatus();
  const size_t slots = static_cast<size_t>(capacity);
  requests_.assign(slots, MPI_REQUEST_NULL);
  ops_.resize(slots);
  statuses_.resize(slots);
  indices_.resize(slots);
  events_.resize(slots);
  capacity_ = capacity;
  return absl::OkStatus();
}

absl::Status MpiTransport::Start(absl::Span<const TransportOp> ops) {
  CheckOps(ops, comm_->rank(), comm_->size(), traits());
  if (absl::Status status = CheckCapacity(ops.size(), outstanding(), capacity_); !status.ok()) {
    return status;
  }
  for (const TransportOp& op : ops) StartOne(op);
  return absl::OkStatus();
}

void MpiTransport::StartOne(const TransportOp& op) {
  const size_t slot = static_cast<size_t>(active_);
  const bool send = op.kind == TransportOp::Kind::kSend;
  const bool rows = op.row_bytes != 0;
  MPI_Datatype type = MPI_BYTE;
  if (rows) {
    const absl::StatusOr<MPI_Datatype> made = TypeOf(op);
    if (!made.ok()) return End(op.cookie, made.status());
    type = *made;
  }
  const int count = rows ? 1 : static_cast<int>(op.bytes);
  const int tag = comm_->ChannelTag(op.tag, op.bytes);
  MPI_Request* request = &requests_[slot];
  const int code = send ? MPI_Isend(op.data, count, type, op.peer, tag, comm_->get(), request)
                        : MPI_Irecv(op.data, count, type, op.peer, tag, comm_->get(), request);
  if (code != MPI_SUCCESS) {
    *request = MPI_REQUEST_NULL;
    End(op.cookie, MpiError(code, send ? "MPI_Isend" : "MPI_Irecv", DescribeOp(op, comm_->rank())));
    return;
  }
  ops_[slot] = op;
  ++active_;
}

absl::StatusOr<MPI_Datatype> MpiTransport::TypeOf(const TransportOp& op) {
  const RowsKey key = {op.bytes / op.row_bytes, op.row_bytes, op.stride_bytes};
  const auto known = types_.find(key);
  if (known != types_.end()) return known->second;
  if (types_.size() == kTypesMax) FreeTypes();
  MPI_Datatype type = MPI_DATATYPE_NULL;
  int code = MPI_Type_create_hvector(static_cast<int>(key[0]), static_cast<int>(key[1]),
                                     static_cast<MPI_Aint>(key[2]), MPI_BYTE, &type);
  if (code == MPI_SUCCESS) code = MPI_Type_commit(&type);
  if (code != MPI_SUCCESS) {
    return MpiError(code, "MPI_Type_create_hvector", DescribeOp(op, comm_->rank()));
  }
  types_.emplace(key, type);
  return type;
}

void MpiTransport::FreeTypes() {
  for (auto& [key, type] : types_) MPI_Type_free(&type);
  types_.clear();
}

absl::StatusOr<int> MpiTransport::Poll(absl::Span<TransportEvent> events) {
  if (ended_ == 0 && active_ > 0) {
    if (absl::Status status = Test(); !status.ok()) return status;
  }
  const int count = std::min(ended_, static_cast<int>(events.size()));
  for (int i = 0; i < count; ++i) {
    events[static_cast<size_t>(i)] = std::move(events_[static_cast<size_t>(first_ended_)]);
    first_ended_ = (first_ended_ + 1) % capacity_;
  }
  ended_ -= count;
  return count;
}

void MpiTransport::Withdraw() {
  for (size_t slot = 0; slot < static_cast<size_t>(active_); ++slot) {
    if (ops_[slot].kind == TransportOp::Kind::kReceive) WithdrawOne(slot);
  }
  CloseGaps();
}

void MpiTransport::WithdrawOne(size_t slot) {
  comm_->Abandon();  // its message may yet come
  const TransportOp& op = ops_[slot];
  MPI_Cancel(&requests_[slot]);
  int complete = 0;
  MPI_Status outcome;
  const int code = MPI_Test(&requests_[slot], &complete, &outcome);
  if (code == MPI_SUCCESS && complete == 0) return;  // a message has met it
  requests_[slot] = MPI_REQUEST_NULL;
  End(op.cookie, code == MPI_SUCCESS ? Outcome(op, outcome, false)
                                     : MpiError(code, "MPI_Irecv", DescribeOp(op, comm_->rank())));
}

absl::Status MpiTransport::Test() {
  int count = 0;
  const int code =
      MPI_Testsome(active_, requests_.data(), &count, indices_.data(), statuses_.data());
  const bool error_in_status = code != MPI_SUCCESS && IsErrorInStatus(code);
  if (code != MPI_SUCCESS && !error_in_status) {
    return MpiError(code, "MPI_Testsome",
                    absl::StrCat(active_, " operations of rank ", comm_->rank(), ", the first a ",
                                 DescribeOp(ops_[0], comm_->rank())));
  }
  for (int k = 0; k < count; ++k) {
    const size_t slot = static_cast<size_t>(indices_[static_cast<size_t>(k)]);
    requests_[slot] = MPI_REQUEST_NULL;
    End(ops_[slot].cookie, Outcome(ops_[slot], statuses_[static_cast<size_t>(k)], error_in_status));
  }
  if (count > 0) CloseGaps();
  return absl::OkStatus();
}

absl::Status MpiTransport::Outcome(const TransportOp& op, const MPI_Status& outcome,
                                   bool error_in_status) const {
  const bool send = op.kind == TransportOp::Kind::kSend;
  // MPI leaves MPI_ERROR alone unless the call says that errors are in the statuses.
  if (error_in_status && outcome.MPI_ERROR != MPI_SUCCESS) {
    return MpiError(outcome.MPI_ERROR, send ? "MPI_Isend" : "MPI_Irecv",
                    DescribeOp(op, comm_->rank()));
  }
  if (send) return absl::OkStatus();
  int cancelled = 0;
  MPI_Test_cancelled(&outcome, &cancelled);
  if (cancelled != 0) return WithdrawnError(op, comm_->rank());
  int bytes = 0;
  MPI_Get_count(&outcome, MPI_BYTE, &bytes);
  if (static_cast<size_t>(bytes) == op.bytes) return absl::OkStatus();
  return LengthError(op, comm_->rank(), static_cast<size_t>(bytes));
}

void MpiTransport::End(uint64_t cookie, absl::Status status) {
  TransportEvent& event = events_[static_cast<size_t>((first_ended_ + ended_) % capacity_)];
  event.cookie = cookie;
  event.status = std::move(status);
  ++ended_;
}

void MpiTransport::CloseGaps() {
  size_t kept = 0;
  for (size_t slot = 0; slot < static_cast<size_t>(active_); ++slot) {
    if (requests_[slot] == MPI_REQUEST_NULL) continue;
    if (kept != slot) {
      requests_[kept] = requests_[slot];
      ops_[kept] = ops_[slot];
    }
    ++kept;
  }
  active_ = static_cast<int>(kept);
}

}  // namespace sluice
