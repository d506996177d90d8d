// How ranks meet over MPI: who shares a node, and what the fabric is made of.
#include <signal.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "sluice/mpi.h"
#include "tensor/error_text.h"
#include "transport/introduction.h"
#include "transport/mpi/mpi_communicator.h"
#include "transport/mpi/mpi_error.h"
#include "transport/mpi/mpi_gather.h"
#include "transport/mpi/mpi_needs.h"
#include "transport/mpi/mpi_posts.h"
#include "transport/mpi/mpi_retired.h"
#include "transport/mpi/mpi_transport.h"
#include "transport/rank_processes.h"
#include "transport/say_once.h"

namespace sluice {
namespace {

static_assert(sizeof(Introduction{}.host) >= MPI_MAX_PROCESSOR_NAME);

absl::string_view ThreadLevelName(int level) {
  switch (level) {
    case MPI_THREAD_SINGLE:
      return "MPI_THREAD_SINGLE";
    case MPI_THREAD_FUNNELED:
      return "MPI_THREAD_FUNNELED";
    case MPI_THREAD_SERIALIZED:
      return "MPI_THREAD_SERIALIZED";
    default:
      return "MPI_THREAD_MULTIPLE";
  }
}

class MpiFabric final : public Fabric {
 public:
  MpiFabric(std::vector<int> node_of_rank, const std::shared_ptr<MpiCommunicator>& comm,
            std::shared_ptr<RankProcesses> processes, std::unique_ptr<MpiGather> gather,
            std::unique_ptr<MpiPosts> posts, absl::Duration timeout)
      : Fabric(comm->rank(), std::move(node_of_rank)),
        timeout_(timeout),
        comm_(comm),
        processes_(std::move(processes)),
        gather_(std::move(gather)),
        posts_(std::move(posts)) {}

  absl::Status StartAllGather(absl::Span<const std::byte> record) override {
    return gather_->Start(record);
  }
  absl::StatusOr<bool> PollAllGather(std::vector<std::byte>* all,
                                     std::vector<int>* missing) override {
    PollRetiredMpiCommunicators();
    return gather_->Poll(all, missing);
  }
  absl::Status Post(int dst, absl::Span<const std::byte> record) override {
    return posts_->Post(dst, record);
  }
  bool PollPost(int* src, std::vector<std::byte>* record) override {
    PollRetiredMpiCommunicators();
    return posts_->Poll(src, record);
  }

  // The first transport shares the fabric's communicator: channels have tags of their own on it.
  absl::StatusOr<std::unique_ptr<Transport>> OpenTransport() override {
    if (!std::exchange(opened_, true)) return std::make_unique<MpiTransport>(comm_, processes_);
    auto own = MpiCommunicator::Duplicate(comm_->get(), Deadline(timeout_), processes_.get());
    if (own.ok()) return std::make_unique<MpiTransport>(*std::move(own), processes_);
    comm_->Abandon();  // the duplication may still be under way on it
    return own.status();
  }

  absl::Status CheckRanks() override { return processes_->Check(); }

  WireReport DescribeWire(int /*peer*/) const override {
    std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text = {};
    int length = 0;
    MPI_Get_library_version(text.data(), &length);
    const std::string version(text.data(), static_cast<size_t>(length));
    WireReport report;
    report.wire = "mpi";
    report.library = version.substr(0, version.find_first_of(",\n"));
    report.why = "a fabric over MPI";
    return report;
  }

  absl::Status CheckOtherThread() const override {
    int level = MPI_THREAD_SINGLE;
    MPI_Query_thread(&level);
    if (level >= MPI_THREAD_MULTIPLE) return absl::OkStatus();
    return absl::FailedPreconditionError(
        absl::StrCat("MPI was initialized with ", ThreadLevelName(level),
                     ", but calls from two threads need MPI_THREAD_MULTIPLE"));
  }

 private:
  const absl::Duration timeout_;
  const std::shared_ptr<MpiCommunicator> comm_;
  const std::shared_ptr<RankProcesses> processes_;
  const std::unique_ptr<MpiGather> gather_;
  const std::unique_ptr<MpiPosts> posts_;
  bool opened_ = false;
};

// MPI over TCP writes to sockets whose far end may have died. The system answers with a signal.
// Unless somebody has said what to do with this signal, it ends this process without a word.
void IgnoreBrokenPipes() {
  struct sigaction action = {};
  if (sigaction(SIGPIPE, nullptr, &action) != 0) return;
  if ((action.sa_flags & SA_SIGINFO) != 0 || action.sa_handler != SIG_DFL) return;
  action.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &action, nullptr);
}

absl::Status CheckThread() {
  if (!MpiIsUsable()) {
    return absl::FailedPreconditionError("MPI is not initialized, or already finalized");
  }
  int level = MPI_THREAD_SINGLE;
  int is_main = 0;
  MPI_Query_thread(&level);
  MPI_Is_thread_main(&is_main);
  if (level >= MPI_THREAD_SERIALIZED || is_main != 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "this thread is not the one that initialized MPI: initialize it with MPI_Init_thread and "
      "MPI_THREAD_SERIALIZED or more");
}

absl::Status CheckCommunicator(MPI_Comm comm) {
  if (comm == MPI_COMM_NULL) return absl::InvalidArgumentError("the communicator is null");
  int is_inter = 0;
  const int code = MPI_Comm_test_inter(comm, &is_inter);
  if (code != MPI_SUCCESS)
    return MpiError(code, "MPI_Comm_test_inter", ErrorText("making a fabric"));
  if (is_inter == 0) return absl::OkStatus();
  return absl::InvalidArgumentError("the communicator is an intercommunicator");
}

absl::StatusOr<Introduction> Introduce(const absl::optional<int>& ranks_per_node) {
  Introduction introduction = {ranks_per_node, {}, OwnProcessName()};
  int length = 0;
  const int code = MPI_Get_processor_name(introduction.host.data(), &length);
  if (code != MPI_SUCCESS)
    return MpiError(code, "MPI_Get_processor_name", ErrorText("making a fabric"));
  std::fill(introduction.host.begin() + length, introduction.host.end(), '\0');
  return introduction;
}

// Waits for the records of all ranks.
absl::StatusOr<std::vector<Introduction>> Meet(MpiGather& gather, const Introduction& own,
                                               const Deadline& deadline) {
  const auto record = absl::MakeConstSpan(reinterpret_cast<const std::byte*>(&own), sizeof(own));
  SLUICE_RETURN_IF_ERROR(gather.Start(record));
  std::vector<std::byte> all;
  std::vector<int> missing;
  while (true) {
    SLUICE_ASSIGN_OR_RETURN(const bool complete, gather.Poll(&all, &missing));
    if (complete) break;
    if (deadline.Passed()) {
      return MakeError(absl::StatusCode::kDeadlineExceeded, "making a fabric: after ",
                       absl::FormatDuration(deadline.timeout()), " nothing has come from ",
                       NamedRanks(missing));
    }
    PollRetiredMpiCommunicators();
    std::this_thread::yield();
  }
  std::vector<Introduction> introductions(all.size() / sizeof(Introduction));
  std::memcpy(introductions.data(), all.data(), all.size());
  return introductions;
}

bool IsFirstOfNode(int rank, absl::Span<const int> nodes) {
  const auto own = nodes.begin() + rank;
  return std::find(nodes.begin(), own, *own) == own;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Fabric>> MakeMpiFabric(MPI_Comm comm,
                                                      const MpiFabricOptions& options) {
  const Deadline deadline(options.timeout);
  SLUICE_RETURN_IF_ERROR(CheckThread());
  SLUICE_RETURN_IF_ERROR(CheckCommunicator(comm));
  IgnoreBrokenPipes();
  SLUICE_ASSIGN_OR_RETURN(auto own, MpiCommunicator::Duplicate(comm, deadline));

  SLUICE_ASSIGN_OR_RETURN(auto introduction, Introduce(options.ranks_per_node));
  auto gather = std::make_unique<MpiGather>(own);
  SLUICE_ASSIGN_OR_RETURN(const auto introductions, Meet(*gather, introduction, deadline));
  SLUICE_ASSIGN_OR_RETURN(auto nodes, PlannedNodesOf(introductions));

  std::vector<ProcessName> names;
  for (const Introduction& each : introductions) names.push_back(each.process);
  const std::vector<int> seen_nodes = NodesOf(introductions);
  auto processes = std::make_shared<RankProcesses>(own->rank(), names, seen_nodes);
  const std::string limit = processes->Limit();
  if (IsFirstOfNode(own->rank(), seen_nodes)) {
    for (const std::string& each : {limit, WhatMpiLacks()}) {
      if (!each.empty()) SayOnce(each);
    }
  }
  auto posts = std::make_unique<MpiPosts>(own, processes);
  SLUICE_RETURN_IF_ERROR(posts->Listen());
  return std::make_unique<MpiFabric>(std::move(nodes), own, std::move(processes), std::move(gather),
                                     std::move(posts), options.timeout);
}

}  // namespace sluice
