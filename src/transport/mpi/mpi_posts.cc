// Posts over MPI: one standing receive, and sends that nobody waits for.
//
// The sends are synchronous: so a receiver that does not poll holds no more than Fabric allows.
#include "transport/mpi/mpi_posts.h"

#include "transport/mpi/mpi_error.h"
#include "transport/op_check.h"

namespace sluice {

MpiPosts::MpiPosts(std::shared_ptr<MpiCommunicator> comm, std::shared_ptr<RankProcesses> processes)
    : comm_(std::move(comm)),
      processes_(std::move(processes)),
      pending_(static_cast<size_t>(comm_->size())) {}

MpiPosts::~MpiPosts() {
  const std::shared_ptr<Messages> messages = std::move(messages_);
  if (!MpiIsUsable()) {
    KeepForEver(messages);
    return;
  }
  WithdrawReceive(&messages->receive);
  std::vector<MPI_Request> requests = messages->sends;
  requests.push_back(messages->receive);
  comm_->Keep({std::move(requests), {messages}});
}

absl::Status MpiPosts::Listen() {
  const int code = MPI_Irecv(messages_->received.data(), Fabric::kMaxPostBytes, MPI_BYTE,
                             MPI_ANY_SOURCE, kMpiPostTag, comm_->get(), &messages_->receive);
  if (code == MPI_SUCCESS) return absl::OkStatus();
  messages_->receive = MPI_REQUEST_NULL;
  return MpiError(code, "MPI_Irecv",
                  ErrorText("post from any rank to ", RankInWords(comm_->rank())));
}

absl::Status MpiPosts::Post(int dst, absl::Span<const std::byte> record) {
  CheckPost(dst, record.size(), comm_->rank(), comm_->size());
  // Nobody is there to read it, and MPI would connect anew (MpiTransport::Post).
  if (processes_ != nullptr && processes_->IsGone(dst)) return absl::OkStatus();
  uint8_t& pending = pending_[static_cast<size_t>(dst)];
  if (pending >= Fabric::kMaxPostsPending) ReapSends();
  if (pending >= Fabric::kMaxPostsPending) return PostRefusal(dst, pending);
  if (last_ == nullptr || absl::MakeConstSpan(*last_) != record) {
    last_ = std::make_shared<const Record>(record.begin(), record.end());
  }
  messages_->sends.push_back(MPI_REQUEST_NULL);
  MPI_Request* request = &messages_->sends.back();
  int code = MPI_Issend(last_->data(), static_cast<int>(last_->size()), MPI_BYTE, dst, kMpiPostTag,
                        comm_->get(), request);
  const char* call = "MPI_Issend";
  int complete = 0;
  if (code == MPI_SUCCESS) {
    call = "MPI_Test";
    code = MPI_Test(request, &complete, MPI_STATUS_IGNORE);
  }
  if (code == MPI_SUCCESS && complete == 0) {
    Keep(dst);
  } else {
    messages_->sends.pop_back();
  }
  if (code == MPI_SUCCESS) return absl::OkStatus();
  return MpiError(code, call,
                  ErrorText("post of ", record.size(), " bytes from ", RankInWords(comm_->rank()),
                            " to ", RankInWords(dst)));
}

void MpiPosts::Keep(int dst) {
  messages_->records.push_back(last_);
  messages_->dsts.push_back(dst);
  indices_.resize(messages_->sends.size());
  ++pending_[static_cast<size_t>(dst)];
}

void MpiPosts::ReapSends() {
  Messages& messages = *messages_;
  int count = 0;
  // A send that fails has left as well: nobody else can do anything about it.
  const int code = MPI_Testsome(static_cast<int>(messages.sends.size()), messages.sends.data(),
                                &count, indices_.data(), MPI_STATUSES_IGNORE);
  if (code != MPI_SUCCESS && !IsErrorInStatus(code)) return;
  if (count == MPI_UNDEFINED || count == 0) return;
  for (int k = 0; k < count; ++k) {
    const size_t index = static_cast<size_t>(indices_[static_cast<size_t>(k)]);
    messages.sends[index] = MPI_REQUEST_NULL;
    --pending_[static_cast<size_t>(messages.dsts[index])];
  }
  size_t kept = 0;
  for (size_t i = 0; i < messages.sends.size(); ++i) {
    if (messages.sends[i] == MPI_REQUEST_NULL) continue;
    messages.sends[kept] = messages.sends[i];
    messages.records[kept] = std::move(messages.records[i]);
    messages.dsts[kept] = messages.dsts[i];
    ++kept;
  }
  messages.sends.resize(kept);
  messages.records.resize(kept);
  messages.dsts.resize(kept);
}

bool MpiPosts::Poll(int* src, std::vector<std::byte>* record) {
  if (!messages_->sends.empty()) ReapSends();
  if (messages_->receive == MPI_REQUEST_NULL) return false;
  int complete = 0;
  MPI_Status outcome;
  if (MPI_Test(&messages_->receive, &complete, &outcome) != MPI_SUCCESS) {
    // One message was lost; the next may come whole.
    static_cast<void>(Listen());
    return false;
  }
  if (complete == 0) return false;
  int bytes = 0;
  MPI_Get_count(&outcome, MPI_BYTE, &bytes);
  *src = outcome.MPI_SOURCE;
  record->assign(messages_->received.begin(), messages_->received.begin() + bytes);
  // If this fails, the rank is deaf from now on, which others find out by its silence.
  static_cast<void>(Listen());
  return true;
}

}  // namespace sluice
