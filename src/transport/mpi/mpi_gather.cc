// All-gather by direct messages, so that silent ranks can be named.
#include "transport/mpi/mpi_gather.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "sluice/fabric.h"
#include "tensor/check.h"
#include "transport/mpi/mpi_error.h"
#include "transport/op_check.h"

namespace sluice {
namespace {

std::string Between(bool receive, int rank, int peer) {
  return absl::StrCat("all-gather record from rank ", receive ? peer : rank, " to rank ",
                      receive ? rank : peer);
}

}  // namespace

MpiGather::~MpiGather() {
  if (messages_ == nullptr) return;
  const std::shared_ptr<Messages> messages = std::move(messages_);
  if (!MpiIsUsable()) {
    KeepForEver(messages);
    return;
  }
  for (size_t i = 0; i < static_cast<size_t>(comm_->size()); ++i) {
    WithdrawReceive(&messages->requests[i]);
  }
  comm_->Keep({messages->requests, {messages}});
}

absl::Status MpiGather::Start(absl::Span<const std::byte> record) {
  if (!status_.ok()) return status_;
  if (messages_ != nullptr) return absl::FailedPreconditionError("an all-gather is under way");
  SLUICE_CHECK(record.size() <= Fabric::kMaxRecordBytes, "the record is too long");
  const size_t size = static_cast<size_t>(comm_->size());
  messages_ = std::make_unique<Messages>();
  messages_->record.assign(record.begin(), record.end());
  messages_->inbox.resize(size * Fabric::kMaxRecordBytes);
  messages_->requests.assign(2 * size, MPI_REQUEST_NULL);
  messages_->statuses.resize(2 * size);
  messages_->indices.resize(2 * size);
  return status_ = Post();
}

absl::Status MpiGather::Post() {
  const int size = comm_->size();
  // Beginning with its neighbours spreads a rank's messages over the others.
  for (int step = 1; step < size; ++step) {
    const int src = (comm_->rank() + size - step) % size;
    const size_t index = static_cast<size_t>(src);
    const int code =
        MPI_Irecv(&messages_->inbox[index * Fabric::kMaxRecordBytes], Fabric::kMaxRecordBytes,
                  MPI_BYTE, src, kMpiGatherTag, comm_->get(), &messages_->requests[index]);
    if (code != MPI_SUCCESS) {
      messages_->requests[index] = MPI_REQUEST_NULL;
      return MpiError(code, "MPI_Irecv", Between(true, comm_->rank(), src));
    }
  }
  for (int step = 1; step < size; ++step) {
    const int dst = (comm_->rank() + step) % size;
    const size_t index = static_cast<size_t>(size) + static_cast<size_t>(dst);
    const int code =
        MPI_Issend(messages_->record.data(), static_cast<int>(messages_->record.size()), MPI_BYTE,
                   dst, kMpiGatherTag, comm_->get(), &messages_->requests[index]);
    if (code != MPI_SUCCESS) {
      messages_->requests[index] = MPI_REQUEST_NULL;
      return MpiError(code, "MPI_Issend", Between(false, comm_->rank(), dst));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> MpiGather::Poll(std::vector<std::byte>* all, std::vector<int>* missing) {
  if (!status_.ok()) return status_;
  SLUICE_CHECK(messages_ != nullptr, "no all-gather is under way");
  status_ = Test();
  if (!status_.ok()) return status_;
  std::vector<int> silent = Missing();
  const bool complete = silent.empty();
  if (missing != nullptr) *missing = std::move(silent);
  if (!complete) return false;
  *all = Assemble();
  messages_.reset();
  return true;
}

absl::Status MpiGather::Test() {
  Messages& messages = *messages_;
  int count = 0;
  const int code =
      MPI_Testsome(static_cast<int>(messages.requests.size()), messages.requests.data(), &count,
                   messages.indices.data(), messages.statuses.data());
  const bool error_in_status = code != MPI_SUCCESS && IsErrorInStatus(code);
  if (code != MPI_SUCCESS && !error_in_status) {
    return MpiError(code, "MPI_Testsome", absl::StrCat("all-gather of rank ", comm_->rank()));
  }
  if (count == MPI_UNDEFINED) return absl::OkStatus();  // nothing is active: all have come
  absl::Status first_error;
  for (int k = 0; k < count; ++k) {
    const int index = messages.indices[static_cast<size_t>(k)];
    messages.requests[static_cast<size_t>(index)] = MPI_REQUEST_NULL;
    first_error.Update(
        CheckOutcome(index, messages.statuses[static_cast<size_t>(k)], error_in_status));
  }
  return first_error;
}

absl::Status MpiGather::CheckOutcome(int index, const MPI_Status& outcome,
                                     bool error_in_status) const {
  const bool receive = index < comm_->size();
  const int peer = receive ? index : index - comm_->size();
  if (error_in_status && outcome.MPI_ERROR != MPI_SUCCESS) {
    return MpiError(outcome.MPI_ERROR, receive ? "MPI_Irecv" : "MPI_Issend",
                    Between(receive, comm_->rank(), peer));
  }
  if (!receive) return absl::OkStatus();
  int bytes = 0;
  MPI_Get_count(&outcome, MPI_BYTE, &bytes);
  if (static_cast<size_t>(bytes) == messages_->record.size()) return absl::OkStatus();
  return RecordLengthError(peer, static_cast<size_t>(bytes), comm_->rank(),
                           messages_->record.size());
}

std::vector<std::byte> MpiGather::Assemble() const {
  const std::vector<std::byte>& own = messages_->record;
  std::vector<std::byte> all;
  all.reserve(static_cast<size_t>(comm_->size()) * own.size());
  for (int src = 0; src < comm_->size(); ++src) {
    const std::byte* record =
        src == comm_->rank()
            ? own.data()
            : &messages_->inbox[static_cast<size_t>(src) * Fabric::kMaxRecordBytes];
    all.insert(all.end(), record, record + own.size());
  }
  return all;
}

std::vector<int> MpiGather::Missing() const {
  std::vector<int> missing;
  const size_t size = static_cast<size_t>(comm_->size());
  for (size_t rank = 0; rank < size; ++rank) {
    if (messages_->requests[rank] != MPI_REQUEST_NULL ||
        messages_->requests[size + rank] != MPI_REQUEST_NULL) {
      missing.push_back(static_cast<int>(rank));
    }
  }
  return missing;
}

}  // namespace sluice
