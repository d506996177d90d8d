// Polling MPI requests in the order in which they were made.
#include "reshard/baselines/wire.h"

#include <sched.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "sluice/status.h"
#include "transport/deadline.h"

namespace sluice::bench {
namespace {

// Reading the clock and polling sessions must not slow down what is measured.
constexpr int64_t kPollsBetweenLooks = 256;

// Calls start(offset, count) for each piece of a message that MPI can count; one if it is empty.
template <typename Start>
absl::Status InPieces(int64_t bytes, const char* call, Start start) {
  absl::Status status;
  for (int64_t done = 0; status.ok() && (done < bytes || done == 0); done += kMostBytes) {
    status = Wire::FromMpi(start(done, static_cast<int>(std::min(bytes - done, kMostBytes))), call);
  }
  return status;
}

}  // namespace

absl::Status Wire::FromMpi(int code, const char* call) {
  if (code == MPI_SUCCESS) return absl::OkStatus();
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(code, text, &length);
  return absl::InternalError(absl::StrCat(call, ": ", text));
}

absl::StatusOr<std::unique_ptr<Wire>> Wire::Create(absl::Duration timeout) {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Request request = MPI_REQUEST_NULL;
  absl::Status status = FromMpi(MPI_Comm_idup(MPI_COMM_WORLD, &comm, &request), "MPI_Comm_idup");
  if (!status.ok()) return status;
  const Deadline deadline(timeout);
  for (int done = 0; done == 0;) {
    status = FromMpi(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
    if (status.ok() && deadline.Passed()) {
      status =
          absl::DeadlineExceededError("not all ranks came to make the baselines' communicator");
    }
    if (!status.ok()) return status;
    sched_yield();
  }
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  return std::unique_ptr<Wire>(new Wire(comm));
}

Wire::~Wire() { MPI_Comm_free(&comm_); }

void Wire::Arm(absl::Duration patience, std::function<absl::Status()> progress) {
  deadline_ = Deadline(patience);
  progress_ = std::move(progress);
}

absl::Status Wire::Send(const std::byte* data, int64_t bytes, int dst, int tag,
                        Requests* requests) {
  return InPieces(bytes, "MPI_Isend", [&](int64_t at, int count) {
    return MPI_Isend(data + at, count, MPI_BYTE, dst, tag, comm_, &requests->emplace_back());
  });
}

absl::Status Wire::Receive(std::byte* data, int64_t bytes, int src, int tag, Requests* requests) {
  return InPieces(bytes, "MPI_Irecv", [&](int64_t at, int count) {
    return MPI_Irecv(data + at, count, MPI_BYTE, src, tag, comm_, &requests->emplace_back());
  });
}

absl::Status Wire::WhileIdle(int64_t polls) {
  sched_yield();
  if (polls % kPollsBetweenLooks != 0) return absl::OkStatus();
  if (progress_) SLUICE_RETURN_IF_ERROR(progress_());
  if (!deadline_.Passed()) return absl::OkStatus();
  return absl::DeadlineExceededError("a baseline's messages did not arrive in time");
}

// One after the other costs one test per request and poll, however many there are.
absl::Status Wire::Wait(Requests* requests) {
  int64_t polls = 0;
  for (MPI_Request& request : *requests) {
    while (true) {
      int done = 0;
      SLUICE_RETURN_IF_ERROR(FromMpi(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test"));
      if (done != 0) break;
      SLUICE_RETURN_IF_ERROR(WhileIdle(++polls));
    }
  }
  requests->clear();
  return absl::OkStatus();
}

absl::Status Wire::TestSome(Requests* requests, std::vector<int>* done) {
  int count = 0;
  done->resize(requests->size());
  const int code = MPI_Testsome(static_cast<int>(requests->size()), requests->data(), &count,
                                done->data(), MPI_STATUSES_IGNORE);
  done->resize(count == MPI_UNDEFINED || code != MPI_SUCCESS ? 0 : static_cast<size_t>(count));
  return FromMpi(code, "MPI_Testsome");
}

absl::Status Wire::WaitSome(Requests* requests, std::vector<int>* done) {
  int64_t polls = 0;
  while (true) {
    absl::Status status = TestSome(requests, done);
    if (!status.ok() || !done->empty()) return status;
    status = WhileIdle(++polls);
    if (!status.ok()) return status;
  }
}

RankSets::~RankSets() {
  for (auto& [set, comm] : made_) {
    if (comm != MPI_COMM_NULL) MPI_Comm_free(&comm);
  }
}

absl::StatusOr<MPI_Comm> RankSets::Get(int root, absl::Span<const int> ranks) {
  std::vector<int> sorted(ranks.begin(), ranks.end());
  std::sort(sorted.begin(), sorted.end());
  auto key = std::make_pair(root, std::move(sorted));
  const auto found = made_.find(key);
  if (found != made_.end()) return found->second;
  if (made_.size() == kMost) {
    return absl::UnimplementedError(
        absl::StrCat("tensors with more than ", kMost, " different sets of ranks"));
  }
  int mine = -1;
  MPI_Comm_rank(comm_, &mine);
  const bool member =
      mine == root || std::binary_search(key.second.begin(), key.second.end(), mine);
  MPI_Comm comm = MPI_COMM_NULL;
  SLUICE_RETURN_IF_ERROR(Wire::FromMpi(
      MPI_Comm_split(comm_, member ? 0 : MPI_UNDEFINED, mine == root ? -1 : mine, &comm),
      "MPI_Comm_split"));
  made_.emplace(std::move(key), comm);
  return comm;
}

}  // namespace sluice::bench
