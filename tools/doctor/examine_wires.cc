// What carries bytes of host memory, for each class of pairs, and why nothing better does.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "doctor/findings.h"
#include "tensor/error_text.h"
#include "transport/direct/direct_limit.h"

namespace sluice::bench {
namespace {

bool HasPairs(const JobFacts& job) {
  const std::vector<std::vector<int>> nodes = RanksOfNodes(job);
  return std::any_of(nodes.begin(), nodes.end(),
                     [](const auto& ranks) { return ranks.size() > 1; });
}

// Those that the kernel does not let copy to or from memory of some other one.
std::vector<int> RefusedRanks(const JobFacts& job) {
  std::vector<int> ranks;
  for (size_t rank = 0; rank < job.ranks.size(); ++rank) {
    if (!job.ranks[rank].wires.refused.empty()) ranks.push_back(static_cast<int>(rank));
  }
  return ranks;
}

std::string ErrorText(int error) {
  return std::string(absl::ErrnoToStatus(error, "").message().substr(2));  // without ": "
}

// A rank alone can at least ask for its own memory.
Finding ExamineAlone(const JobFacts& job) {
  const int error = job.ranks.front().wires.own_copy_error;
  if (error == 0) {
    return {"wire_node", "no two ranks share a node; direct could be used if they did", State::kOk,
            "", ""};
  }
  DirectLimit limit;
  limit.error = error;
  return {"wire_node",
          absl::StrCat("no two ranks share a node; if they did, the kernel would refuse direct "
                       "copies: process_vm_readv: ",
                       ErrorText(error)),
          State::kSlow, std::string(RemedyOf(limit)), ""};
}

Finding ExamineNode(const JobFacts& job) {
  if (!HasPairs(job)) return ExamineAlone(job);
  const std::string& error = job.ranks.front().wires.direct_error;
  if (!error.empty()) {
    return {"wire_node",
            absl::StrCat(job.messages, ": messages, as direct cannot be used: ", error),
            State::kSlow,
            "one user, one PID namespace and one user namespace for all ranks of a node; "
            "docs/cluster.md, \"Containers\"",
            ""};
  }
  const std::vector<int> refused = RefusedRanks(job);
  if (refused.empty()) {
    return {"wire_node", "direct: one copy between the memory of any two ranks of a node",
            State::kOk, "", ""};
  }
  const DirectLimit& limit = job.limit;
  return {
      "wire_node",
      absl::StrCat("direct for memory of AllocateShared, and ", job.messages,
                   " (messages) for other memory: the kernel does not let rank ", limit.rank,
                   " copy to and from memory of rank ", limit.peer, ": ", ErrorText(limit.error),
                   ". So it is with ", NamedRanks(refused, kCompactRuns).text()),
      State::kSlow, absl::StrCat(RemedyOf(limit), "; or take tensors' memory from AllocateShared"),
      ""};
}

// Whether Open MPI's environment leaves out its shared memory, "self,tcp" or "^vader".
bool LeavesOutSharedMemory(const std::string& btl) {
  if (btl.empty()) return false;
  const bool excludes = btl[0] == '^';
  bool names = false;
  for (const absl::string_view word : absl::StrSplit(btl.substr(excludes ? 1 : 0), ',')) {
    names = names || word == "vader" || word == "sm";
  }
  return names == excludes;
}

Finding ExamineMessages(const JobFacts& job, const RankFacts& facts) {
  const MpiFacts& mpi = facts.mpi;
  Finding finding = {"wire_messages", "within a node as MPI chooses", State::kOk, "", ""};
  if (!HasPairs(job)) {
    finding.value = "none within a node";
    return finding;
  }
  if (!job.uses_mpi) {
    finding.value = absl::StrCat("within a node over ", job.messages);
    return finding;
  }
  if (!job.is_open_mpi() || absl::StrContains(mpi.components, "ucx")) return finding;
  if (LeavesOutSharedMemory(mpi.btl)) {
    return {"wire_messages", absl::StrCat("within a node over TCP: btl is ", mpi.btl), State::kSlow,
            "leave btl unset, or add vader (Open MPI 4) or sm (Open MPI 5) to it", ""};
  }
  finding.value = "within a node over MPI's shared memory";
  const WireFacts& wires = facts.wires;
  const bool tries_in_vain = wires.own_copy_error != 0 || !RefusedRanks(job).empty();
  if (tries_in_vain || !wires.direct_error.empty()) {
    absl::StrAppend(&finding.value, ", in two copies: one (CMA) takes what the kernel refuses");
    if (!tries_in_vain || mpi.single_copy == "none") return finding;
    finding.state = State::kSlow;
    absl::StrAppend(&finding.value, ". Open MPI 4 tries each time, and prints \"Read -1\"");
    finding.todo = "until that is allowed: --mca btl_vader_single_copy_mechanism none";
  } else if (mpi.single_copy == "none") {
    finding.state = State::kSlow;
    absl::StrAppend(&finding.value, ", in two copies: btl_vader_single_copy_mechanism is none");
    finding.todo = "leave it unset: --baseline and --transport mpi send such messages";
  }
  return finding;
}

// UCX takes what the machine has. TCP is what is there without UCX.
void ExamineWorldNetwork(const JobFacts& job, const RankFacts& facts, Finding* finding) {
  if (job.messages != "tcp" || facts.wires.rdma_devices == 0) return;
  finding->state = State::kSlow;
  absl::StrAppend(&finding->value, ", which leave the RDMA devices here alone (",
                  facts.wires.rdma_devices, ")");
  finding->todo = "UCX (libucp) on all ranks, and SLUICE_WIRES unset";
}

Finding ExamineNetwork(const JobFacts& job, const RankFacts& facts) {
  if (RanksOfNodes(job).size() < 2) {
    return {"wire_network", "none: all ranks share one node", State::kOk, "", ""};
  }
  Finding finding = {"wire_network", absl::StrCat(job.messages, ": messages between nodes"),
                     State::kOk, "", ""};
  if (!job.uses_mpi) {
    ExamineWorldNetwork(job, facts, &finding);
    return finding;
  }
  const MpiFacts& mpi = facts.mpi;
  if (facts.wires.rdma_devices == 0) {
    absl::StrAppend(&finding.value, "; no RDMA device is here, so they cross TCP");
    return finding;
  }
  const bool uses_them = mpi.components.empty() || absl::StrContains(mpi.components, "ucx") ||
                         absl::StrContains(mpi.components, "ofi") ||
                         absl::StrContains(mpi.components, "cm");
  absl::StrAppend(&finding.value, "; RDMA devices here: ", facts.wires.rdma_devices);
  if (uses_them) return finding;
  finding.state = State::kSlow;
  absl::StrAppend(&finding.value, ", and MPI has loaded nothing that uses them");
  finding.todo = "an Open MPI with UCX or libfabric (--mca pml ucx; ompi_info lists what it has)";
  return finding;
}

}  // namespace

Findings ExamineWires(const JobFacts& job) {
  Findings all = {{"wire_rank", "local: one copy within the rank", State::kOk, "", ""},
                  ExamineNode(job)};
  const auto add = [&](const auto& judge) {
    for (Finding& finding : ForRanks(job, judge)) all.push_back(std::move(finding));
  };
  add([&](const RankFacts& facts, int) { return ExamineMessages(job, facts); });
  add([&](const RankFacts& facts, int) { return ExamineNetwork(job, facts); });
  return all;
}

}  // namespace sluice::bench
