// All-gathers over MPI: sends that wait for their receivers, and receives of what has been found.
#include "transport/mpi/mpi_gather.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "tensor/check.h"
#include "tensor/error_text.h"
#include "transport/mpi/mpi_error.h"

namespace sluice {
namespace {

// Most turns of a rank's part in a gather, in one call. Others may bring as many again meanwhile.
constexpr int kMaxTurns = 64;

size_t MaxMessageBytes(int size) {
  return std::max(TreeGather::kDefaultMaxMessageBytes, TreeGather::MinMessageBytes(size));
}

}  // namespace

MpiGather::MpiGather(std::shared_ptr<MpiCommunicator> comm)
    : comm_(std::move(comm)),
      tree_(comm_->rank(), comm_->size(), MaxMessageBytes(comm_->size())),
      sends_(static_cast<size_t>(comm_->size())) {}

MpiGather::~MpiGather() {
  if (messages_->requests.empty()) return;
  const std::shared_ptr<Messages> messages = std::move(messages_);
  if (!MpiIsUsable()) {
    KeepForEver(messages);
    return;
  }
  comm_->Keep({messages->requests, {messages}});
}

absl::Status MpiGather::Start(absl::Span<const std::byte> record) {
  if (!status_.ok()) return status_;
  if (tree_.is_under_way()) return absl::FailedPreconditionError("an all-gather is under way");
  tree_.Start(record, MonotonicNs());
  return status_ = Send().status();
}

absl::StatusOr<bool> MpiGather::Poll(std::vector<std::byte>* all, std::vector<int>* missing) {
  if (!status_.ok()) return status_;
  SLUICE_CHECK(tree_.is_under_way(), "no all-gather is under way");
  status_ = Advance();
  if (!status_.ok()) return status_;
  if (tree_.IsReady() && needed_ > 0) {
    if (missing != nullptr) *missing = Takers();
    return false;
  }
  absl::StatusOr<bool> complete = tree_.Poll(all, missing);
  status_ = complete.status();
  return complete;
}

absl::Status MpiGather::Advance() {
  bool moved = true;
  for (int turn = 0; moved && turn < kMaxTurns; ++turn) {
    moved = false;
    for (const auto& step : {&MpiGather::Receive, &MpiGather::Test, &MpiGather::Send}) {
      SLUICE_ASSIGN_OR_RETURN(const bool has, (this->*step)());
      moved = moved || has;
    }
  }
  return absl::OkStatus();
}

// A message that nobody receives yet. The one that was found is the one that a receive from its
// sender meets, as nothing else receives these messages.
absl::StatusOr<bool> MpiGather::Find(MPI_Status* found) {
  int is_found = 0;
  const int code = MPI_Iprobe(MPI_ANY_SOURCE, kMpiGatherTag, comm_->get(), &is_found, found);
  if (code == MPI_SUCCESS) return is_found != 0;
  const Message from_anyone = {MPI_ANY_SOURCE, true, false, {}};
  if (!IsEndOfRank(code)) return MpiError(code, "MPI_Iprobe", Describe(from_anyone));
  // Some rank has ended. An MPI that goes on after that tells which one if it is asked about it.
  for (int src = 0; src < comm_->size(); ++src) {
    if (src == comm_->rank()) continue;
    const int own_code = MPI_Iprobe(src, kMpiGatherTag, comm_->get(), &is_found, found);
    if (own_code != MPI_SUCCESS) {
      return MpiError(own_code, "MPI_Iprobe", Describe({src, true, false, {}}));
    }
    if (is_found != 0) return true;
  }
  return false;
}

absl::StatusOr<bool> MpiGather::Receive() {
  MPI_Status found;
  absl::StatusOr<bool> is_found = Find(&found);
  if (!is_found.ok() || !*is_found) return is_found;
  int bytes = 0;
  MPI_Get_count(&found, MPI_BYTE, &bytes);
  Message message = {found.MPI_SOURCE, true, false, {}};
  if (bytes < 0 || static_cast<size_t>(bytes) > MaxMessageBytes(comm_->size())) {
    return MakeError(absl::StatusCode::kDataLoss, Describe(message), ": it has ", bytes, " bytes");
  }
  message.bytes.resize(static_cast<size_t>(bytes));
  SLUICE_RETURN_IF_ERROR(Begin(std::move(message)));
  return true;
}

absl::StatusOr<bool> MpiGather::Send() {
  const auto busy = [this](int dst) { return sends_[static_cast<size_t>(dst)] != 0; };
  TreeGather::Outgoing out;
  bool sent = false;
  while (tree_.Next(MonotonicNs(), busy, &out)) {
    sent = true;
    SLUICE_RETURN_IF_ERROR(Begin({out.dst, false, out.is_needed, std::move(out.bytes)}));
  }
  return sent;
}

absl::Status MpiGather::Begin(Message message) {
  Messages& messages = *messages_;
  messages.list.push_back(std::move(message));
  messages.requests.push_back(MPI_REQUEST_NULL);
  Message& begun = messages.list.back();
  MPI_Request* const request = &messages.requests.back();
  const int bytes = static_cast<int>(begun.bytes.size());
  const int code = begun.is_receive ? MPI_Irecv(begun.bytes.data(), bytes, MPI_BYTE, begun.peer,
                                                kMpiGatherTag, comm_->get(), request)
                                    : MPI_Issend(begun.bytes.data(), bytes, MPI_BYTE, begun.peer,
                                                 kMpiGatherTag, comm_->get(), request);
  if (code != MPI_SUCCESS) {
    absl::Status status =
        MpiError(code, begun.is_receive ? "MPI_Irecv" : "MPI_Issend", Describe(begun));
    messages.list.pop_back();
    messages.requests.pop_back();
    return status;
  }
  if (begun.is_receive) return absl::OkStatus();
  sends_[static_cast<size_t>(begun.peer)] = 1;
  if (begun.is_needed) ++needed_;
  return absl::OkStatus();
}

absl::StatusOr<bool> MpiGather::Test() {
  Messages& messages = *messages_;
  if (messages.requests.empty()) return false;
  int count = 0;
  indices_.resize(messages.requests.size());
  statuses_.resize(messages.requests.size());
  const int code =
      MPI_Testsome(static_cast<int>(messages.requests.size()), messages.requests.data(), &count,
                   indices_.data(), statuses_.data());
  const bool error_in_status = code != MPI_SUCCESS && IsErrorInStatus(code);
  if (code != MPI_SUCCESS && !error_in_status) {
    return MpiError(code, "MPI_Testsome", ErrorText("all-gather of ", RankInWords(comm_->rank())));
  }
  if (count == MPI_UNDEFINED || count == 0) return false;
  absl::Status first_error;
  for (int k = 0; k < count; ++k) {
    const size_t index = static_cast<size_t>(indices_[static_cast<size_t>(k)]);
    const MPI_Status& outcome = statuses_[static_cast<size_t>(k)];
    messages.requests[index] = MPI_REQUEST_NULL;
    first_error.Update(
        End(messages.list[index], error_in_status ? outcome.MPI_ERROR : MPI_SUCCESS, &outcome));
  }
  size_t kept = 0;
  for (size_t i = 0; i < messages.requests.size(); ++i) {
    if (messages.requests[i] == MPI_REQUEST_NULL) continue;
    messages.requests[kept] = messages.requests[i];
    if (kept != i) messages.list[kept] = std::move(messages.list[i]);
    ++kept;
  }
  messages.requests.resize(kept);
  messages.list.erase(messages.list.begin() + static_cast<ptrdiff_t>(kept), messages.list.end());
  if (!first_error.ok()) return first_error;
  return true;
}

// Notes that a message is over.
absl::Status MpiGather::End(const Message& message, int code, const MPI_Status* status) {
  if (!message.is_receive) {
    sends_[static_cast<size_t>(message.peer)] = 0;
    if (message.is_needed) --needed_;
  }
  if (code != MPI_SUCCESS) {
    return MpiError(code, message.is_receive ? "MPI_Irecv" : "MPI_Issend", Describe(message));
  }
  if (!message.is_receive) return absl::OkStatus();
  int bytes = 0;
  MPI_Get_count(status, MPI_BYTE, &bytes);
  if (static_cast<size_t>(bytes) != message.bytes.size()) {
    return MakeError(absl::StatusCode::kDataLoss, Describe(message), ": it has ", bytes,
                     " bytes, but ", message.bytes.size(), " had been found");
  }
  return tree_.Take(message.peer, message.bytes);
}

ErrorText MpiGather::Describe(const Message& message) const {
  const ErrorText peer =
      message.peer == MPI_ANY_SOURCE ? ErrorText("any rank") : RankInWords(message.peer);
  const ErrorText own = RankInWords(comm_->rank());
  return ErrorText("all-gather record from ", message.is_receive ? peer : own, " to ",
                   message.is_receive ? own : peer);
}

std::vector<int> MpiGather::Takers() const {
  std::vector<int> takers;
  for (const Message& message : messages_->list) {
    if (!message.is_receive && message.is_needed) takers.push_back(message.peer);
  }
  std::sort(takers.begin(), takers.end());
  return takers;
}

}  // namespace sluice
