// Lists of tags, and probes for what they name.
//
// MPI keeps the order of messages between two ranks on one communicator. So when a list has come,
// all that was sent before it is there to be probed for, or has met a receive.
#include "transport/mpi/mpi_farewell.h"

#include <algorithm>
#include <new>
#include <utility>

namespace sluice {
namespace {

// Most steps of one Poll, so that Poll returns now and then.
constexpr int kStepsPerPoll = 64;

bool HasEnded(MPI_Request* request) {
  if (*request == MPI_REQUEST_NULL) return true;
  int complete = 0;
  // An error ends the request as well.
  return MPI_Test(request, &complete, MPI_STATUS_IGNORE) != MPI_SUCCESS || complete != 0;
}

}  // namespace

MpiFarewell::MpiFarewell(std::shared_ptr<MpiCommunicator> comm, absl::Span<const Sent> sends,
                         std::shared_ptr<RankProcesses> processes)
    : comm_(std::move(comm)),
      processes_(std::move(processes)),
      heard_(static_cast<size_t>(comm_->size())) {
  const size_t size = heard_.size();
  messages_->lists.resize(size);
  messages_->sends.assign(size, MPI_REQUEST_NULL);
  for (const Sent& sent : sends) {
    messages_->lists[static_cast<size_t>(sent.peer)].push_back(sent.tag);
  }
  heard_[static_cast<size_t>(comm_->rank())] = 1;
  for (int step = 1; step < comm_->size(); ++step) Say((comm_->rank() + step) % comm_->size());
}

MpiFarewell::~MpiFarewell() {
  if (!MpiIsUsable()) {
    KeepForEver(messages_);
    return;
  }
  std::vector<MPI_Request> requests = messages_->sends;
  requests.push_back(messages_->receive);
  requests.push_back(messages_->drop);
  comm_->Keep({std::move(requests), {messages_}});
}

void MpiFarewell::Say(int peer) {
  std::vector<int>& list = messages_->lists[static_cast<size_t>(peer)];
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
  MPI_Request& request = messages_->sends[static_cast<size_t>(peer)];
  if (processes_ != nullptr && processes_->IsGone(peer)) return;  // as in MpiTransport::Post
  // A rank that cannot be told finds out by this rank's silence.
  if (MPI_Issend(list.data(), static_cast<int>(list.size()), MPI_INT, peer, kMpiFarewellTag,
                 comm_->get(), &request) != MPI_SUCCESS) {
    request = MPI_REQUEST_NULL;
  }
}

bool MpiFarewell::Poll() {
  if (!MpiIsUsable()) return true;
  ForgetEnded();
  for (int i = 0; i < kStepsPerPoll; ++i) {
    const bool heard = Hear();
    if (!Drop() && !heard) break;
  }
  bool over = hears_ < 0 && to_drop_.empty() && messages_->drop == MPI_REQUEST_NULL;
  for (size_t rank = 0; rank < heard_.size(); ++rank) {
    const bool told = HasEnded(&messages_->sends[rank]);
    if (IsEnded(static_cast<int>(rank))) continue;
    over = over && told && heard_[rank] != 0;
  }
  return over;
}

// A message that an ended rank had begun to send does not come whole.
void MpiFarewell::ForgetEnded() {
  if (hears_ >= 0 && IsEnded(hears_) && !HasEnded(&messages_->receive)) {
    // MPI goes on to own these.
    new std::vector<int>(std::move(messages_->list));
    messages_->receive = MPI_REQUEST_NULL;
    hears_ = -1;
  }
  if (messages_->drop != MPI_REQUEST_NULL && IsEnded(drops_from_) && !HasEnded(&messages_->drop)) {
    static_cast<void>(messages_->dropped.release());
    messages_->drop = MPI_REQUEST_NULL;
  }
}

bool MpiFarewell::Hear() {
  if (hears_ < 0) {
    int found = 0;
    MPI_Status status;
    if (MPI_Iprobe(MPI_ANY_SOURCE, kMpiFarewellTag, comm_->get(), &found, &status) != MPI_SUCCESS ||
        found == 0) {
      return false;
    }
    int count = 0;
    MPI_Get_count(&status, MPI_INT, &count);
    messages_->list.resize(static_cast<size_t>(count));
    if (MPI_Irecv(messages_->list.data(), count, MPI_INT, status.MPI_SOURCE, kMpiFarewellTag,
                  comm_->get(), &messages_->receive) != MPI_SUCCESS) {
      messages_->receive = MPI_REQUEST_NULL;
      return false;
    }
    hears_ = status.MPI_SOURCE;
  }
  if (!HasEnded(&messages_->receive)) return false;
  for (const int tag : messages_->list) to_drop_.push_back({hears_, tag});
  heard_[static_cast<size_t>(std::exchange(hears_, -1))] = 1;
  return true;
}

bool MpiFarewell::Drop() {
  if (messages_->drop != MPI_REQUEST_NULL) {
    if (!HasEnded(&messages_->drop)) return false;
    messages_->drop = MPI_REQUEST_NULL;
    messages_->dropped = nullptr;
    return true;
  }
  if (to_drop_.empty()) return false;
  const Sent next = to_drop_.back();
  int found = 0;
  MPI_Status status;
  if (MPI_Iprobe(next.peer, next.tag, comm_->get(), &found, &status) != MPI_SUCCESS || found == 0) {
    to_drop_.pop_back();
    return true;
  }
  int bytes = 0;
  MPI_Get_count(&status, MPI_BYTE, &bytes);
  messages_->dropped.reset(new (std::nothrow) std::byte[static_cast<size_t>(std::max(bytes, 1))]);
  if (messages_->dropped == nullptr) return false;
  // Nobody else receives here, so it meets the message that was found.
  if (MPI_Irecv(messages_->dropped.get(), bytes, MPI_BYTE, next.peer, next.tag, comm_->get(),
                &messages_->drop) != MPI_SUCCESS) {
    messages_->drop = MPI_REQUEST_NULL;
    to_drop_.pop_back();
    return true;
  }
  drops_from_ = next.peer;
  return true;
}

}  // namespace sluice
