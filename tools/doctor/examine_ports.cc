// Which ports of the job are open, and to whom.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "doctor/findings.h"

namespace sluice::bench {
namespace {

// "rank 0: 4711, 4712; rank 1: 4713".
template <typename Port>
std::string PortsText(const JobFacts& job, const std::vector<Port> PortFacts::*ports) {
  constexpr size_t kShownMax = 8;
  std::vector<std::string> parts;
  for (size_t rank = 0; rank < job.ranks.size(); ++rank) {
    const std::vector<Port>& own = job.ranks[rank].ports.*ports;
    if (own.empty()) continue;
    if (parts.size() == kShownMax) {
      parts.emplace_back("...");
      break;
    }
    parts.push_back(absl::StrCat("rank ", rank, ": ", absl::StrJoin(own, ", ")));
  }
  return absl::StrJoin(parts, "; ");
}

std::string WhoMayConnect(const JobFacts& job) {
  if (job.uses_mpi) return "MPI has opened them, and guards them or not";
  return job.ranks.front().ports.has_token ? "whoever connects has to prove that it knows the token"
                                           : "there is no token: the store takes its own user and "
                                             "root, and ranks those that know "
                                             "the store's key";
}

}  // namespace

Findings ExaminePorts(const JobFacts& job) {
  const std::string others = PortsText(job, &PortFacts::others);
  const std::string loopback = PortsText(job, &PortFacts::loopback);
  if (others.empty() && loopback.empty()) return {{"ports", "none is open", State::kOk, "", ""}};
  std::vector<std::string> parts;
  if (!others.empty()) parts.push_back(absl::StrCat("open to other hosts: ", others));
  if (!loopback.empty()) parts.push_back(absl::StrCat("open to this host alone: ", loopback));
  parts.push_back(WhoMayConnect(job));
  bool asks_ucx_tcp = false;
  for (const RankFacts& facts : job.ranks) asks_ucx_tcp |= facts.ports.asks_ucx_tcp;
  if (!asks_ucx_tcp) return {{"ports", absl::StrJoin(parts, "; "), State::kOk, "", ""}};
  parts.push_back(
      "UCX's TCP asks for no proof, and lets whoever reaches it write into the process");
  return {{"ports", absl::StrJoin(parts, "; "), State::kMissing,
           "leave SLUICE_WIRES or UCX_NET_DEVICES out, unless the network is the job's own", ""}};
}

}  // namespace sluice::bench
