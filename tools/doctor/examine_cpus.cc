// Cores, where ranks may run on them, and caches.
#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "doctor/findings.h"
#include "tensor/error_text.h"

namespace sluice::bench {
namespace {

// Ranks of a node that lie too close together, and what they have.
struct Crowd {
  std::vector<int> ranks;  // empty: there is none
  size_t cpus = 0;
};

const CpuFacts& CpuOf(const JobFacts& job, int rank) {
  return job.ranks[static_cast<size_t>(rank)].cpu;
}

std::set<int> AllCpusOf(const JobFacts& job, const std::vector<int>& ranks) {
  std::set<int> cpus;
  for (const int rank : ranks) {
    const std::vector<int>& own = CpuOf(job, rank).cpus;
    cpus.insert(own.begin(), own.end());
  }
  return cpus;
}

// The ranks that may run on nothing beyond the CPUs of one of them, if they are more than these
// CPUs.
Crowd FindCrowd(const JobFacts& job, const std::vector<int>& ranks) {
  std::set<std::vector<int>> masks;
  for (const int rank : ranks) masks.insert(CpuOf(job, rank).cpus);
  for (const std::vector<int>& mask : masks) {
    Crowd crowd = {{}, mask.size()};
    for (const int rank : ranks) {
      const std::vector<int>& own = CpuOf(job, rank).cpus;
      if (std::includes(mask.begin(), mask.end(), own.begin(), own.end())) {
        crowd.ranks.push_back(rank);
      }
    }
    if (crowd.ranks.size() > mask.size()) return crowd;
  }
  return {};
}

bool IsOversubscribed(const JobFacts& job, const std::vector<int>& ranks) {
  const double quota = CpuOf(job, ranks.front()).quota;
  const auto count = static_cast<double>(ranks.size());
  return !FindCrowd(job, ranks).ranks.empty() || ranks.size() > AllCpusOf(job, ranks).size() ||
         (quota > 0 && count > std::ceil(quota));
}

Finding ExamineCores(const JobFacts& job, const std::vector<int>& ranks) {
  const CpuFacts& first = CpuOf(job, ranks.front());
  const size_t cpus = AllCpusOf(job, ranks).size();
  const std::string what = absl::StrCat(ranks.size(), ranks.size() == 1 ? " rank" : " ranks");
  const std::string fewer = absl::StrCat(
      "start at most ", std::min<size_t>(cpus, static_cast<size_t>(std::max(first.online, 1))),
      " ranks on a machine such as this; with more, results hold and times do not");
  const Crowd crowd = FindCrowd(job, ranks);
  if (static_cast<int>(ranks.size()) > first.online) {
    return {"cores",
            absl::StrCat("oversubscribed: ", what, " share ", first.online, " CPUs of the machine"),
            State::kSlow, fewer, ""};
  }
  if (!crowd.ranks.empty()) {
    return {"cores",
            absl::StrCat(NamedRanks(crowd.ranks, kCompactRuns).text(), " may run on the same ",
                         crowd.cpus, " of ", first.online, " CPUs alone"),
            State::kSlow, "mpirun --map-by core --bind-to core, or --bind-to none", ""};
  }
  if (first.quota > 0 && static_cast<double>(ranks.size()) > std::ceil(first.quota)) {
    return {"cores",
            absl::StrFormat("%s may take the time of %.1f CPUs together, by their control group",
                            what, first.quota),
            State::kSlow, "raise the limit (docker run --cpus), or start fewer ranks", ""};
  }
  return {"cores", absl::StrCat(what, " on ", cpus, cpus == 1 ? " CPU" : " CPUs"), State::kOk, "",
          ""};
}

// The same of nodes with equal findings.
Findings ExamineNodeCores(const JobFacts& job) {
  Findings distinct;
  std::vector<std::vector<int>> ranks_of;
  for (const std::vector<int>& ranks : RanksOfNodes(job)) {
    Finding finding = ExamineCores(job, ranks);
    size_t i = 0;
    while (i < distinct.size() && distinct[i].value != finding.value) ++i;
    if (i == distinct.size()) {
      distinct.push_back(std::move(finding));
      ranks_of.emplace_back();
    }
    ranks_of[i].insert(ranks_of[i].end(), ranks.begin(), ranks.end());
  }
  for (size_t i = 0; i < distinct.size() && distinct.size() > 1; ++i) {
    std::sort(ranks_of[i].begin(), ranks_of[i].end());
    distinct[i].ranks = NamedRanks(ranks_of[i], kCompactRuns).text();
  }
  return distinct;
}

Finding ExamineBinding(const RankFacts& facts) {
  const CpuFacts& cpu = facts.cpu;
  const bool is_bound = static_cast<int>(cpu.cpus.size()) < cpu.online;
  Finding finding = {"binding",
                     is_bound
                         ? absl::StrCat("bound to ", cpu.cpus.size(), " of ", cpu.online, " CPUs")
                         : absl::StrCat("not bound: may run on all ", cpu.online, " CPUs"),
                     State::kOk, "", ""};
  if (cpu.numa_nodes < 2) return finding;
  absl::StrAppend(&finding.value, "; ", cpu.numa_nodes, " NUMA nodes");
  if (cpu.is_placed) {
    absl::StrAppend(&finding.value, ", and staging lies near the rank");
    return finding;
  }
  finding.state = State::kSlow;
  absl::StrAppend(&finding.value, ", and staging lies anywhere");
  finding.todo = is_bound ? "bind each rank within one NUMA node; in containers "
                            "--cap-add=SYS_NICE lets it place memory"
                          : "mpirun --bind-to core, or srun --cpu-bind=cores";
  return finding;
}

bool IsOn(const std::string& text) { return text == "1" || text == "true"; }

Finding ExamineYielding(const JobFacts& job, const RankFacts& facts, bool is_oversubscribed) {
  Finding finding = {"yielding", "", State::kOk, "", ""};
  if (!is_oversubscribed) {
    finding.value = "not needed: no two ranks share a CPU";
    return finding;
  }
  if (!job.uses_mpi) {
    finding.value = "on: ranks that wait leave the CPU to others";
    return finding;
  }
  if (!job.is_open_mpi()) {
    return {"yielding", "MPI's own waits take a CPU each (MPICH does not yield)", State::kSlow,
            "start fewer ranks; sessions of Sluice yield in any case", ""};
  }
  const MpiFacts& mpi = facts.mpi;
  const std::string& said = mpi.yield_when_idle.empty() ? mpi.oversubscribed : mpi.yield_when_idle;
  if (IsOn(said)) {
    finding.value = "on: ranks that wait in MPI leave the CPU to others";
    return finding;
  }
  if (said.empty()) {
    finding.value = "not known: Open MPI's launcher has not said that ranks are too many";
  } else {
    finding.value = "off: a rank that waits in MPI keeps others from running";
  }
  finding.state = State::kSlow;
  finding.todo = "mpirun --mca mpi_yield_when_idle 1 (srun: OMPI_MCA_mpi_yield_when_idle=1)";
  return finding;
}

Finding ExamineCache(const RankFacts& facts, size_t ranks_of_node) {
  const CpuFacts& cpu = facts.cpu;
  const double per_cpu = std::max(
      1.0, static_cast<double>(ranks_of_node) / static_cast<double>(std::max(cpu.online, 1)));
  const double mib = static_cast<double>(cpu.cache_bytes) / per_cpu / (1 << 20);
  if (cpu.knows_cache) {
    return {"cache", absl::StrFormat("%.1f MiB of the last-level cache for each rank", mib),
            State::kOk, "", ""};
  }
  return {
      "cache", absl::StrFormat("the system does not tell; %.1f MiB for each rank are assumed", mib),
      State::kMissing, "let ranks read /sys/devices/system/cpu (mount /sys in the container)", ""};
}

}  // namespace

Findings ExamineCpus(const JobFacts& job) {
  const std::vector<std::vector<int>> nodes = RanksOfNodes(job);
  Findings all = ExamineNodeCores(job);
  const auto add = [&](const auto& judge) {
    for (Finding& finding : ForRanks(job, judge)) all.push_back(std::move(finding));
  };
  std::vector<bool> is_oversubscribed;
  is_oversubscribed.reserve(nodes.size());
  for (const auto& ranks : nodes) is_oversubscribed.push_back(IsOversubscribed(job, ranks));
  const auto node_of = [&](int rank) {
    return static_cast<size_t>(job.node_of_rank[static_cast<size_t>(rank)]);
  };
  add([](const RankFacts& facts, int) { return ExamineBinding(facts); });
  add([&](const RankFacts& facts, int rank) {
    return ExamineYielding(job, facts, is_oversubscribed[node_of(rank)]);
  });
  add([&](const RankFacts& facts, int rank) {
    return ExamineCache(facts, nodes[node_of(rank)].size());
  });
  return all;
}

}  // namespace sluice::bench
