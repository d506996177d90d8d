// Barriers and gathers of MPI, which are started and then tested for.
#include "job/mpi_ranks.h"

#include <sched.h>

#include <limits>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "transport/deadline.h"

namespace sluice::bench {
namespace {

constexpr int kRollCallTag = 1;
constexpr absl::Duration kRollCallTime = absl::Milliseconds(500);

absl::Status OfMpi(int code, const char* call) {
  if (code == MPI_SUCCESS) return absl::OkStatus();
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(code, text, &length);
  return absl::InternalError(absl::StrCat(call, ": ", text));
}

}  // namespace

MpiRanks::MpiRanks(MPI_Comm comm, int rank, int size) : Ranks(rank, size), comm_(comm) {}

MpiRanks::~MpiRanks() {
  if (request_ == MPI_REQUEST_NULL) MPI_Comm_free(&comm_);
}

absl::StatusOr<std::unique_ptr<Ranks>> MpiRanks::Create(absl::Duration timeout) {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Request request = MPI_REQUEST_NULL;
  absl::Status status = OfMpi(MPI_Comm_idup(MPI_COMM_WORLD, &comm, &request), "MPI_Comm_idup");
  const Deadline deadline(timeout);
  int done = 0;
  while (status.ok() && done == 0) {
    status = OfMpi(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
    if (deadline.Passed()) {
      status.Update(absl::DeadlineExceededError("not all ranks came to make a communicator"));
    }
    sched_yield();
  }
  if (!status.ok()) return status;
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  int rank = -1;
  int size = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  auto ranks = std::unique_ptr<MpiRanks>(new MpiRanks(comm, rank, size));
  char host[MPI_MAX_PROCESSOR_NAME] = {};
  int length = 0;
  MPI_Get_processor_name(host, &length);
  status = ranks->FindHosts(host, timeout);
  if (!status.ok()) return status;
  return ranks;
}

absl::Status MpiRanks::AwaitRequest(absl::Duration timeout, Progress progress) {
  const auto is_done = [this]() -> absl::StatusOr<bool> {
    int done = 0;
    absl::Status status = OfMpi(MPI_Test(&request_, &done, MPI_STATUS_IGNORE), "MPI_Test");
    if (!status.ok()) return status;
    return done != 0;
  };
  return Await(
      is_done, [this] { return SilentRanks(); }, timeout, progress);
}

std::vector<int> MpiRanks::SilentRanks() {
  const auto ranks = static_cast<size_t>(size());
  roll_call_sends_.assign(ranks, MPI_REQUEST_NULL);
  roll_call_receives_.assign(ranks, MPI_REQUEST_NULL);
  for (size_t r = 0; r < ranks; ++r) {
    const auto peer = static_cast<int>(r);
    MPI_Isend(nullptr, 0, MPI_CHAR, peer, kRollCallTag, comm_, &roll_call_sends_[r]);
    MPI_Irecv(nullptr, 0, MPI_CHAR, peer, kRollCallTag, comm_, &roll_call_receives_[r]);
  }
  const Deadline deadline(kRollCallTime);
  while (!deadline.Passed()) {
    int all_here = 0;
    MPI_Testall(size(), roll_call_receives_.data(), &all_here, MPI_STATUSES_IGNORE);
    sched_yield();
  }
  std::vector<int> silent;
  for (size_t r = 0; r < ranks; ++r) {
    int here = 0;
    MPI_Test(&roll_call_receives_[r], &here, MPI_STATUS_IGNORE);
    if (here == 0) silent.push_back(static_cast<int>(r));
  }
  return silent;
}

absl::Status MpiRanks::Barrier(absl::Duration timeout, Progress progress) {
  absl::Status status = OfMpi(MPI_Ibarrier(comm_, &request_), "MPI_Ibarrier");
  if (!status.ok()) return status;
  return AwaitRequest(timeout, progress);
}

absl::Status MpiRanks::LayOut() {
  const int64_t total = std::accumulate(bytes_.begin(), bytes_.end(), int64_t{0});
  if (total > std::numeric_limits<int>::max()) {
    return absl::ResourceExhaustedError("the ranks' results are more than 2 GiB");
  }
  offsets_.assign(bytes_.size(), 0);
  std::partial_sum(bytes_.begin(), bytes_.end() - 1, offsets_.begin() + 1);
  all_.assign(static_cast<size_t>(total), '\0');
  return absl::OkStatus();
}

std::vector<std::string> MpiRanks::Cut() const {
  std::vector<std::string> records;
  for (size_t r = 0; r < bytes_.size(); ++r) {
    records.push_back(
        all_.substr(static_cast<size_t>(offsets_[r]), static_cast<size_t>(bytes_[r])));
  }
  return records;
}

absl::Status MpiRanks::Exchange(const std::string& record, const Collective& sizes,
                                const Collective& records, absl::Duration timeout,
                                Progress progress) {
  mine_ = record;
  mine_bytes_ = static_cast<int>(mine_.size());
  bytes_.assign(static_cast<size_t>(size()), 0);
  absl::Status status = OfMpi(sizes.start(), sizes.name);
  if (status.ok()) status = AwaitRequest(timeout, progress);
  if (status.ok()) status = LayOut();
  if (!status.ok()) return status;
  status = OfMpi(records.start(), records.name);
  if (status.ok()) status = AwaitRequest(timeout, progress);
  return status;
}

absl::StatusOr<std::vector<std::string>> MpiRanks::AllGather(const std::string& record,
                                                             absl::Duration timeout,
                                                             Progress progress) {
  const auto sizes = [this] {
    return MPI_Iallgather(&mine_bytes_, 1, MPI_INT, bytes_.data(), 1, MPI_INT, comm_, &request_);
  };
  const auto records = [this] {
    return MPI_Iallgatherv(mine_.data(), mine_bytes_, MPI_CHAR, all_.data(), bytes_.data(),
                           offsets_.data(), MPI_CHAR, comm_, &request_);
  };
  absl::Status status =
      Exchange(record, {"MPI_Iallgather", sizes}, {"MPI_Iallgatherv", records}, timeout, progress);
  if (!status.ok()) return status;
  return Cut();
}

absl::StatusOr<std::vector<std::string>> MpiRanks::GatherToFirst(const std::string& record,
                                                                 absl::Duration timeout,
                                                                 Progress progress) {
  const auto sizes = [this] {
    return MPI_Igather(&mine_bytes_, 1, MPI_INT, bytes_.data(), 1, MPI_INT, 0, comm_, &request_);
  };
  const auto records = [this] {
    return MPI_Igatherv(mine_.data(), mine_bytes_, MPI_CHAR, all_.data(), bytes_.data(),
                        offsets_.data(), MPI_CHAR, 0, comm_, &request_);
  };
  absl::Status status =
      Exchange(record, {"MPI_Igather", sizes}, {"MPI_Igatherv", records}, timeout, progress);
  if (!status.ok()) return status;
  if (rank() != 0) return std::vector<std::string>();
  return Cut();
}

}  // namespace sluice::bench
