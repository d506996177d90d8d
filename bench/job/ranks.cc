// Exchanges that give up at a deadline, hosts, and a look at the processes of the other ranks.
#include "job/ranks.h"

#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <map>
#include <system_error>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "device/cache_share.h"
#include "job/last_words.h"
#include "sluice/status.h"
#include "tensor/error_text.h"
#include "transport/deadline.h"
#include "transport/introduction.h"
#include "transport/passing_fabric.h"
#include "transport/rank_processes.h"

namespace sluice::bench {
namespace {

// Where ranks share CPUs, a rank that has come first takes time from those that are still at work.
// A yield only says who is next, and Linux gives all who want to run an equal part.
constexpr int64_t kYields = 20;
constexpr int64_t kSleepNs = 50'000;

std::string NameOf(absl::Span<const int> ranks) { return NamedRanks(ranks, kCompactRuns).text(); }

// As bytes that ranks exchange.
template <typename T>
std::string TextOf(const T* values, size_t count) {
  return std::string(reinterpret_cast<const char*>(values), count * sizeof(T));
}

// Names the ranks whose value is not rank 0's.
absl::Status CompareKnob(const std::string& name, absl::Span<const int64_t> values) {
  std::map<int64_t, std::vector<int>> others;
  for (size_t r = 1; r < values.size(); ++r) {
    if (values[r] != values[0]) others[values[r]].push_back(static_cast<int>(r));
  }
  if (others.empty()) return absl::OkStatus();
  std::string text =
      absl::StrCat("the ranks were given different ", name, ": rank 0 has ", values[0]);
  for (const auto& [value, ranks] : others) {
    absl::StrAppend(&text, ", ", NameOf(ranks), ranks.size() == 1 ? " has " : " have ", value);
  }
  return absl::FailedPreconditionError(text);
}

}  // namespace

absl::Status CombineStatuses(absl::Span<const absl::Status> status_by_rank) {
  std::map<std::string, std::vector<int>> ranks_by_message;
  absl::StatusCode code = absl::StatusCode::kOk;
  for (size_t r = 0; r < status_by_rank.size(); ++r) {
    if (status_by_rank[r].ok()) continue;
    if (code == absl::StatusCode::kOk) code = status_by_rank[r].code();
    ranks_by_message[absl::StrCat(status_by_rank[r].message())].push_back(static_cast<int>(r));
  }
  if (ranks_by_message.empty()) return absl::OkStatus();
  const auto& [message, ranks] = *ranks_by_message.begin();
  if (ranks.size() == status_by_rank.size()) return absl::Status(code, message);
  std::vector<std::string> parts;
  for (const auto& [text, who] : ranks_by_message) {
    parts.push_back(absl::StrCat(NameOf(who), ": ", text));
    if (parts.size() == 4) break;  // enough to find the cause
  }
  return absl::Status(code, absl::StrJoin(parts, "; "));
}

std::unique_ptr<Fabric> PlanNodes(std::unique_ptr<Fabric> fabric, int ranks_per_node) {
  if (ranks_per_node <= 0) return fabric;
  std::vector<int> nodes(static_cast<size_t>(fabric->size()));
  for (int rank = 0; rank < fabric->size(); ++rank) {
    nodes[static_cast<size_t>(rank)] = rank / ranks_per_node;
  }
  return std::make_unique<PassingFabric>(std::move(fabric), std::move(nodes));
}

// A thread that sleeps until a process ends. It prints a line, and leaves the end of the run to
// whoever waits for the ranks: filling and checking memory go on for seconds without a wait.
class Ranks::Watch {
 public:
  Watch(int rank, absl::Span<const ProcessName> names, absl::Span<const int> nodes)
      : rank_(rank), processes_(rank, names, nodes), stop_fd_(eventfd(0, EFD_CLOEXEC)) {
    if (stop_fd_ < 0 || processes_.empty()) return;
    try {
      thread_ = std::thread([this] { Run(); });
    } catch (const std::system_error&) {
      // Waiting ranks find out by themselves.
    }
  }
  ~Watch() {
    const uint64_t one = 1;
    if (thread_.joinable()) {
      static_cast<void>(!write(stop_fd_, &one, sizeof(one)));
      thread_.join();
    }
    if (stop_fd_ >= 0) close(stop_fd_);
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

 private:
  void Run() {
    constexpr int kLookMs = 20;
    std::array<pollfd, 2> watched = {pollfd{stop_fd_, POLLIN, 0},
                                     pollfd{processes_.exit_fd(), POLLIN, 0}};
    // Where nothing can wake it, it looks.
    int pause_ms = watched[1].fd < 0 ? kLookMs : -1;
    absl::Status status;
    while (status.ok()) {
      poll(watched.data(), watched.size(), pause_ms);
      if (watched[0].revents != 0) return;
      // It says so some time after the end.
      watched[1].fd = -1;
      pause_ms = kLookMs;
      status = processes_.Check();
    }
    if (WasInterrupted()) return;
    const std::string line =
        absl::StrCat("sluice-bench: rank ", rank_, ": ", status.message(), "\n");
    std::fputs(line.c_str(), stderr);
  }

  const int rank_;
  RankProcesses processes_;  // the thread's alone
  const int stop_fd_;        // an eventfd
  std::thread thread_;
};

Ranks::Ranks(std::unique_ptr<Fabric> fabric)
    : fabric_(std::move(fabric)), exchange_(fabric_.get()) {}

Ranks::~Ranks() = default;

absl::StatusOr<std::unique_ptr<Ranks>> Ranks::Create(std::unique_ptr<Fabric> fabric,
                                                     absl::Duration timeout) {
  auto ranks = std::unique_ptr<Ranks>(new Ranks(std::move(fabric)));
  SLUICE_RETURN_IF_ERROR(ranks->FindHosts(timeout));
  return ranks;
}

absl::Status Ranks::FindHosts(absl::Duration timeout) {
  Introduction own = {absl::nullopt, {}, OwnProcessName()};
  if (gethostname(own.host.data(), own.host.size() - 1) != 0) {
    std::strncpy(own.host.data(), "localhost", own.host.size() - 1);
  }
  SLUICE_ASSIGN_OR_RETURN(const auto records, AllGather(TextOf(&own, 1), timeout));
  std::vector<Introduction> introductions(records.size());
  std::vector<ProcessName> processes;
  for (size_t r = 0; r < records.size(); ++r) {
    std::memcpy(&introductions[r], records[r].data(), sizeof(Introduction));
    processes.push_back(introductions[r].process);
  }
  watch_ = std::make_unique<Watch>(rank(), processes, NodesOf(introductions));
  for (const Introduction& introduction : introductions) {
    const std::string host(introduction.host.data());
    const auto found = std::find(hosts_.begin(), hosts_.end(), host);
    host_of_rank_.push_back(static_cast<int>(found - hosts_.begin()));
    if (found == hosts_.end()) hosts_.push_back(host);
  }
  const int here = host_of_rank_[static_cast<size_t>(rank())];
  shares_cpus_ = RanksPerCpu(std::count(host_of_rank_.begin(), host_of_rank_.end(), here)) > 1;
  return absl::OkStatus();
}

int Ranks::local_rank() const {
  const auto self = host_of_rank_.begin() + rank();
  return static_cast<int>(std::count(host_of_rank_.begin(), self, *self));
}

absl::Status Ranks::Exchange(const std::string& record, std::vector<std::string>* records,
                             absl::Duration timeout, Progress progress) {
  absl::Status status = exchange_.Start(record);
  Deadline deadline(timeout);
  int64_t gathers = exchange_.gathers();
  for (int64_t polls = 0; status.ok(); ++polls) {
    const absl::StatusOr<bool> done = exchange_.Poll(records, &missing_);
    if (done.ok() && *done) return absl::OkStatus();
    status = done.status();
    status.Update(progress());
    if (exchange_.gathers() > gathers) {
      gathers = exchange_.gathers();
      deadline = Deadline(timeout);
      polls = 0;
    } else if (status.ok() && deadline.Passed()) {
      return absl::DeadlineExceededError(
          absl::StrCat("no word from ", NameOf(missing_), " within ",
                       absl::FormatDuration(absl::Ceil(timeout, absl::Seconds(1)))));
    }
    if (status.ok()) Pause(polls);
  }
  return status;
}

void Ranks::Pause(int64_t polls) const {
  if (!shares_cpus_ || polls < kYields) {
    sched_yield();
    return;
  }
  const timespec pause = {0, kSleepNs};
  nanosleep(&pause, nullptr);
}

absl::StatusOr<std::vector<std::string>> Ranks::AllGather(const std::string& record,
                                                          absl::Duration timeout,
                                                          Progress progress) {
  std::vector<std::string> records;
  SLUICE_RETURN_IF_ERROR(Exchange(record, &records, timeout, progress));
  return records;
}

absl::StatusOr<std::vector<std::string>> Ranks::GatherToFirst(const std::string& record,
                                                              absl::Duration timeout,
                                                              Progress progress) {
  std::vector<std::string> records;
  SLUICE_RETURN_IF_ERROR(Exchange(record, rank() == 0 ? &records : nullptr, timeout, progress));
  return records;
}

absl::Status Ranks::AllOk(const absl::Status& mine, absl::Duration timeout, Progress progress) {
  std::string record;
  if (!mine.ok()) {
    record = absl::StrCat(std::string(1, static_cast<char>(mine.code())), mine.message());
  }
  SLUICE_ASSIGN_OR_RETURN(const auto records, AllGather(record, timeout, progress));
  std::vector<absl::Status> statuses;
  statuses.reserve(records.size());
  for (const std::string& text : records) {
    statuses.push_back(text.empty()
                           ? absl::OkStatus()
                           : absl::Status(static_cast<absl::StatusCode>(text[0]), text.substr(1)));
  }
  return CombineStatuses(statuses);
}

absl::Status Ranks::Agree(const absl::Status& understood, const KnobList& knobs,
                          absl::Duration timeout) {
  SLUICE_RETURN_IF_ERROR(AllOk(understood, timeout));
  std::vector<int64_t> own;
  own.reserve(knobs.size());
  for (const auto& [name, value] : knobs) own.push_back(value);
  SLUICE_ASSIGN_OR_RETURN(auto records, AllGather(TextOf(own.data(), own.size()), timeout));
  size_t bytes = 0;  // of the rank with most; a flag may bring knobs of its own
  for (const std::string& record : records) bytes = std::max(bytes, record.size());
  std::vector<int64_t> values(records.size());
  for (size_t i = 0; i < bytes / sizeof(int64_t); ++i) {
    for (size_t r = 0; r < values.size(); ++r) {
      records[r].resize(bytes);
      std::memcpy(&values[r], records[r].data() + i * sizeof(int64_t), sizeof(int64_t));
    }
    SLUICE_RETURN_IF_ERROR(CompareKnob(i < knobs.size() ? knobs[i].first : "flags", values));
  }
  return absl::OkStatus();
}

void Ranks::Part(absl::Duration timeout) { Barrier(timeout).IgnoreError(); }

}  // namespace sluice::bench
