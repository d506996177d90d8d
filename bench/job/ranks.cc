// What all kinds of ranks have in common: hosts, and waits that give up at a deadline.
#include "job/ranks.h"

#include <sched.h>
#include <time.h>

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "device/cache_share.h"
#include "job/agreement.h"
#include "transport/deadline.h"
#include "transport/introduction.h"

namespace sluice::bench {
namespace {

// Where ranks share CPUs, a rank that has come first takes time from those that are still at work.
// A yield only says who is next, and Linux gives all who want to run an equal part.
constexpr int64_t kYields = 20;
constexpr int64_t kSleepNs = 50'000;

absl::Status NoProgress() { return absl::OkStatus(); }

}  // namespace

absl::Status Ranks::FindHosts(const std::string& own_host, absl::Duration timeout) {
  Introduction own = {absl::nullopt, {}, OwnProcessName()};
  std::strncpy(own.host.data(), own_host.c_str(), own.host.size() - 1);
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

absl::Status Ranks::Await(absl::FunctionRef<absl::StatusOr<bool>()> is_done,
                          absl::FunctionRef<std::vector<int>()> silent, absl::Duration timeout,
                          Progress progress) {
  const Deadline deadline(timeout);
  for (int64_t polls = 0;; ++polls) {
    const absl::StatusOr<bool> done = is_done();
    if (done.ok() && *done) return absl::OkStatus();
    absl::Status status = done.status();
    if (processes_ != nullptr) status.Update(processes_->Check());
    status.Update(progress());
    if (!status.ok()) return status;
    if (deadline.Passed()) break;
    Pause(polls);
  }
  return absl::DeadlineExceededError(
      absl::StrCat("no word from ", RanksName(silent()), " within ",
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
