// What was started: the build, the fabric, MPI, ranks and nodes.
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "doctor/findings.h"
#include "tensor/error_text.h"

namespace sluice::bench {
namespace {

Finding ExamineBuild(const JobFacts& job) {
  const bool is_fast =
      !absl::StrContains(job.build, "debug") && !absl::StrContains(job.build, "sanitized");
  if (is_fast) return {"build", job.build, State::kOk, "", ""};
  return {"build", job.build, State::kSlow, "measure a release build: scripts/build.sh release",
          ""};
}

Finding ExamineFabric(const JobFacts& job) {
  const std::string by =
      job.started_by.empty() ? "" : absl::StrCat(", started by ", job.started_by);
  return {"fabric", absl::StrCat(job.fabric, by), State::kOk, "", ""};
}

Finding ExamineMpi(const JobFacts& job, const RankFacts& facts) {
  if (!job.uses_mpi) return {"mpi", "not in use", State::kOk, "", ""};
  Finding finding = {"mpi", job.mpi, State::kOk, "", ""};
  const MpiFacts& mpi = facts.mpi;
  if (!mpi.components.empty()) absl::StrAppend(&finding.value, ", with ", mpi.components);
  if (mpi.lacks.empty()) return finding;
  finding.state = State::kMissing;
  absl::StrAppend(&finding.value, "; ", mpi.lacks);
  finding.todo = "as this line says, or Open MPI 5.0.11 or later";
  return finding;
}

Finding ExamineThreads(const JobFacts& job, const RankFacts& facts) {
  if (!job.uses_mpi) return {"mpi_threads", "not in use", State::kOk, "", ""};
  const MpiFacts& mpi = facts.mpi;
  if (mpi.has_all_threads) {
    return {"mpi_threads", absl::StrCat(mpi.thread_level, ": progress threads can be used"),
            State::kOk, "", ""};
  }
  return {"mpi_threads",
          absl::StrCat("MPI_THREAD_MULTIPLE was asked for, and ", mpi.thread_level,
                       " is what MPI gives: no progress threads"),
          State::kMissing, "an MPI that was built for MPI_THREAD_MULTIPLE", ""};
}

Finding ExamineRanks(const JobFacts& job, const RankFacts& facts) {
  const auto size = static_cast<int>(job.ranks.size());
  const std::string value = size == 1 ? "1" : absl::StrCat(size);
  if (facts.mpi.launched <= size) return {"ranks", value, State::kOk, "", ""};
  return {"ranks",
          absl::StrCat(value, ", where the launcher has started ", facts.mpi.launched,
                       ": each is a job of its own"),
          State::kMissing, absl::StrCat("use the launcher of ", job.mpi, ", or `srun --mpi=pmix`"),
          ""};
}

// "node1: ranks 0-3; node2: ranks 4-7".
std::string NodesText(const JobFacts& job) {
  constexpr size_t kShownMax = 8;
  const std::vector<std::vector<int>> nodes = RanksOfNodes(job);
  std::vector<std::string> parts;
  for (const std::vector<int>& ranks : nodes) {
    if (parts.size() == kShownMax) break;
    std::vector<std::string> hosts;
    for (const int rank : ranks) {
      const std::string& host = job.ranks[static_cast<size_t>(rank)].host;
      if (hosts.empty() || hosts.back() != host) hosts.push_back(host);
    }
    parts.push_back(
        absl::StrCat(absl::StrJoin(hosts, "+"), ": ", NamedRanks(ranks, kCompactRuns).text()));
  }
  const std::string more = nodes.size() > kShownMax ? "; ..." : "";
  return absl::StrCat(nodes.size(), " (", absl::StrJoin(parts, "; "), more, ")",
                      job.nodes_are_given ? ", as --ranks-per-node says" : "");
}

// What keeps ranks of one machine in several nodes; empty: nothing does.
std::string WhatParts(const JobFacts& job) {
  std::map<std::string, std::set<int>> nodes;
  std::map<std::string, std::set<std::string>> hosts;
  std::map<std::string, std::set<uint64_t>> namespaces;
  for (size_t rank = 0; rank < job.ranks.size(); ++rank) {
    const RankFacts& facts = job.ranks[rank];
    if (facts.machine.empty()) continue;
    nodes[facts.machine].insert(job.node_of_rank[rank]);
    hosts[facts.machine].insert(facts.host);
    namespaces[facts.machine].insert(facts.pid_namespace);
  }
  for (const auto& [machine, numbers] : nodes) {
    if (numbers.size() < 2) continue;
    std::vector<std::string> causes;
    if (hosts[machine].size() > 1) causes.emplace_back("host name");
    if (namespaces[machine].size() > 1) causes.emplace_back("namespace of process numbers");
    return absl::StrJoin(causes, " and ");
  }
  return "";
}

Finding ExamineNodes(const JobFacts& job) {
  Finding finding = {"nodes", NodesText(job), State::kOk, "", ""};
  const std::string cause = job.nodes_are_given ? "" : WhatParts(job);
  if (cause.empty()) return finding;
  finding.state = State::kSlow;
  absl::StrAppend(&finding.value, "; some are one machine, whose ranks differ in ", cause);
  finding.todo =
      "one host name and one PID namespace for all ranks of a machine (docker run --uts=host "
      "--pid=host); docs/cluster.md, \"Who shares a node\"";
  return finding;
}

}  // namespace

Findings ExamineStart(const JobFacts& job) {
  Findings all = {ExamineBuild(job), ExamineFabric(job)};
  const auto add = [&](const auto& judge) {
    for (Finding& finding : ForRanks(job, judge)) all.push_back(std::move(finding));
  };
  add([&](const RankFacts& facts, int) { return ExamineMpi(job, facts); });
  add([&](const RankFacts& facts, int) { return ExamineThreads(job, facts); });
  add([&](const RankFacts& facts, int) { return ExamineRanks(job, facts); });
  all.push_back(ExamineNodes(job));
  return all;
}

}  // namespace sluice::bench
