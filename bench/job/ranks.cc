// Barriers and gathers that poll the session and give up at a deadline.
#include "job/ranks.h"

#include <sched.h>
#include <time.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "device/cache_share.h"
#include "job/agreement.h"
#include "transport/introduction.h"

namespace sluice::bench {
namespace {

constexpr int kRollCallTag = 1;
constexpr absl::Duration kRollCallTime = absl::Milliseconds(500);

// Where ranks share CPUs, a rank that has come first takes time from those that are still at work.
// A yield only says who is next, and Linux gives all who want to run an equal part.
constexpr int64_t kYields = 20;
constexpr int64_t kSleepNs = 50'000;

absl::Status FromMpi(int code, const char* call) {
  if (code == MPI_SUCCESS) return absl::OkStatus();
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(code, text, &length);
  return absl::InternalError(absl::StrCat(call, ": ", text));
}

absl::Status NoProgress() { return absl::OkStatus(); }

}  // namespace

std::string MpiVersion() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  MPI_Get_library_version(text, &length);
  const std::string version(text, static_cast<size_t>(length));
  return version.substr(0, version.find_first_of(",\n"));
}

Ranks::Ranks(MPI_Comm comm) : comm_(comm) {
  MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
  MPI_Comm_rank(comm_, &rank_);
  MPI_Comm_size(comm_, &size_);
}

Ranks::~Ranks() {
  if (request_ == MPI_REQUEST_NULL) MPI_Comm_free(&comm_);
}

absl::StatusOr<std::unique_ptr<Ranks>> Ranks::Create(absl::Duration timeout) {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Request request = MPI_REQUEST_NULL;
  absl::Status status = FromMpi(MPI_Comm_idup(MPI_COMM_WORLD, &comm, &request), "MPI_Comm_idup");
  const absl::Time deadline = absl::Now() + timeout;
  int done = 0;
  while (status.ok() && done == 0) {
    status = FromMpi(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
    if (absl::Now() > deadline) {
      status.Update(absl::DeadlineExceededError("not all ranks came to make a communicator"));
    }
    sched_yield();
  }
  if (!status.ok()) return status;
  auto ranks = std::unique_ptr<Ranks>(new Ranks(comm));
  status = ranks->FindHosts(timeout);
  if (!status.ok()) return status;
  return ranks;
}

absl::Status Ranks::FindHosts(absl::Duration timeout) {
  Introduction own = {0, {}, OwnProcessName()};
  int length = 0;
  MPI_Get_processor_name(own.host.data(), &length);
  const auto records =
      AllGather(std::string(reinterpret_cast<const char*>(&own), sizeof(own)), timeout, NoProgress);
  if (!records.ok()) return records.status();
  std::vector<Introduction> introductions(records->size());
  std::vector<ProcessName> processes;
  for (size_t r = 0; r < records->size(); ++r) {
    std::memcpy(&introductions[r], (*records)[r].data(), sizeof(Introduction));
    processes.push_back(introductions[r].process);
  }
  const std::vector<int> nodes = NodesOf(introductions);
  processes_ = std::make_unique<RankProcesses>(rank_, processes, nodes);
  watch_ =
      std::make_unique<RankWatch>(rank_, std::make_unique<RankProcesses>(rank_, processes, nodes));
  for (const Introduction& introduction : introductions) {
    const std::string host(introduction.host.data());
    const auto found = std::find(hosts_.begin(), hosts_.end(), host);
    host_of_rank_.push_back(static_cast<int>(found - hosts_.begin()));
    if (found == hosts_.end()) hosts_.push_back(host);
  }
  const auto here = std::count(host_of_rank_.begin(), host_of_rank_.end(),
                               host_of_rank_[static_cast<size_t>(rank_)]);
  shares_cpus_ = RanksPerCpu(here) > 1;
  return absl::OkStatus();
}

int Ranks::local_rank() const {
  const auto self = host_of_rank_.begin() + rank_;
  return static_cast<int>(std::count(host_of_rank_.begin(), self, *self));
}

absl::Status Ranks::Await(absl::Duration timeout, Progress progress) {
  const absl::Time deadline = absl::Now() + timeout;
  for (int64_t polls = 0;; ++polls) {
    int done = 0;
    absl::Status status = FromMpi(MPI_Test(&request_, &done, MPI_STATUS_IGNORE), "MPI_Test");
    if (status.ok() && done != 0) return absl::OkStatus();
    if (processes_ != nullptr) status.Update(processes_->Check());
    status.Update(progress());
    if (!status.ok()) return status;
    if (absl::Now() > deadline) break;
    Pause(polls);
  }
  return absl::DeadlineExceededError(
      absl::StrCat("no word from ", RanksName(SilentRanks()), " within ",
                   absl::FormatDuration(absl::Ceil(timeout, absl::Seconds(1)))));
}

void Ranks::Pause(int64_t polls) const {
  if (!shares_cpus_ || polls < kYields) {
    sched_yield();
    return;
  }
  const timespec pause = {0, kSleepNs};
  nanosleep(&pause, nullptr);
}

std::vector<int> Ranks::SilentRanks() {
  const auto ranks = static_cast<size_t>(size_);
  roll_call_sends_.assign(ranks, MPI_REQUEST_NULL);
  roll_call_receives_.assign(ranks, MPI_REQUEST_NULL);
  for (size_t r = 0; r < ranks; ++r) {
    const auto peer = static_cast<int>(r);
    MPI_Isend(nullptr, 0, MPI_CHAR, peer, kRollCallTag, comm_, &roll_call_sends_[r]);
    MPI_Irecv(nullptr, 0, MPI_CHAR, peer, kRollCallTag, comm_, &roll_call_receives_[r]);
  }
  const absl::Time deadline = absl::Now() + kRollCallTime;
  while (absl::Now() < deadline) {
    int all_here = 0;
    MPI_Testall(size_, roll_call_receives_.data(), &all_here, MPI_STATUSES_IGNORE);
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

absl::Status Ranks::Barrier(absl::Duration timeout, Progress progress) {
  absl::Status status = FromMpi(MPI_Ibarrier(comm_, &request_), "MPI_Ibarrier");
  if (!status.ok()) return status;
  return Await(timeout, progress);
}

absl::Status Ranks::LayOut() {
  const int64_t total = std::accumulate(bytes_.begin(), bytes_.end(), int64_t{0});
  if (total > std::numeric_limits<int>::max()) {
    return absl::ResourceExhaustedError("the ranks' results are more than 2 GiB");
  }
  offsets_.assign(bytes_.size(), 0);
  std::partial_sum(bytes_.begin(), bytes_.end() - 1, offsets_.begin() + 1);
  all_.assign(static_cast<size_t>(total), '\0');
  return absl::OkStatus();
}

std::vector<std::string> Ranks::Cut() const {
  std::vector<std::string> records;
  for (size_t r = 0; r < bytes_.size(); ++r) {
    records.push_back(
        all_.substr(static_cast<size_t>(offsets_[r]), static_cast<size_t>(bytes_[r])));
  }
  return records;
}

absl::Status Ranks::Exchange(const std::string& record, const Collective& sizes,
                             const Collective& records, absl::Duration timeout, Progress progress) {
  mine_ = record;
  mine_bytes_ = static_cast<int>(mine_.size());
  bytes_.assign(static_cast<size_t>(size_), 0);
  absl::Status status = FromMpi(sizes.start(), sizes.name);
  if (status.ok()) status = Await(timeout, progress);
  if (status.ok()) status = LayOut();
  if (!status.ok()) return status;
  status = FromMpi(records.start(), records.name);
  if (status.ok()) status = Await(timeout, progress);
  return status;
}

absl::StatusOr<std::vector<std::string>> Ranks::AllGather(const std::string& record,
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

absl::StatusOr<std::vector<std::string>> Ranks::GatherToFirst(const std::string& record,
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
  if (rank_ != 0) return std::vector<std::string>();
  return Cut();
}

absl::Status Ranks::AllOk(const absl::Status& mine, absl::Duration timeout, Progress progress) {
  std::string record;
  if (!mine.ok()) {
    record = absl::StrCat(std::string(1, static_cast<char>(mine.code())), mine.message());
  }
  const auto records = AllGather(record, timeout, progress);
  if (!records.ok()) return records.status();
  std::vector<absl::Status> statuses;
  for (const std::string& text : *records) {
    statuses.push_back(text.empty()
                           ? absl::OkStatus()
                           : absl::Status(static_cast<absl::StatusCode>(text[0]), text.substr(1)));
  }
  return CombineStatuses(statuses);
}

}  // namespace sluice::bench
